"""Text to ids and back: characters, byte-level BPE, any `tokenizer.json`. Knows no torch.

Reading order: byte_alphabet · splitting · character_table · definition · tokenizer · fitting · characters ·
byte_pairs · listed_vocabulary · vocabulary · byte_pairs_by_hand · part_encoder ·
template_worker · template_process · chat_rendering · chat · utf8_states · graphemes · cutting · scripts ·
tally · encoding_worker · encoding_pool.

In: text.  Out: ids.  Used by: data, generate, convert, cs336, the command line.  Read next: byte_alphabet.py.
"""

from pellucid.text.byte_pairs import BytePairProgress, byte_pair_tokenizer, train_byte_pairs
from pellucid.text.byte_pairs_by_hand import HandTokenizer, train_byte_pairs_by_hand
from pellucid.text.characters import character_tokenizer
from pellucid.text.chat import CHATML, CHATML_TOKENS, ChatTemplate, EncodedChat
from pellucid.text.chat_rendering import Message
from pellucid.text.cutting import TokenSpan, spans, spans_of_ids, visible
from pellucid.text.definition import END_OF_TEXT
from pellucid.text.encoding_pool import EncodingPool
from pellucid.text.encoding_worker import Answer, Stretch
from pellucid.text.fitting import fitted
from pellucid.text.graphemes import GraphemeStream, crop, graphemes
from pellucid.text.listed_vocabulary import ListedVocabulary, TokenKind, listed_byte_pairs, listed_pieces
from pellucid.text.new_tokens import with_new_tokens
from pellucid.text.scripts import letters_by_script
from pellucid.text.splitting import GPT2_SPLIT, QWEN35_SPLIT
from pellucid.text.tally import Tally, tally
from pellucid.text.tokenizer import TextTokenizer, Tokenizer, load_tokenizer
from pellucid.text.utf8_states import bytes_begun, states_after_tokens
from pellucid.text.vocabulary import VocabularyChoice, choose_vocabulary, least_size

__all__ = [
    "CHATML",
    "CHATML_TOKENS",
    "END_OF_TEXT",
    "GPT2_SPLIT",
    "QWEN35_SPLIT",
    "Answer",
    "BytePairProgress",
    "ChatTemplate",
    "EncodedChat",
    "EncodingPool",
    "GraphemeStream",
    "HandTokenizer",
    "ListedVocabulary",
    "Message",
    "Stretch",
    "Tally",
    "TextTokenizer",
    "TokenKind",
    "TokenSpan",
    "Tokenizer",
    "VocabularyChoice",
    "byte_pair_tokenizer",
    "bytes_begun",
    "character_tokenizer",
    "choose_vocabulary",
    "crop",
    "fitted",
    "graphemes",
    "least_size",
    "letters_by_script",
    "listed_byte_pairs",
    "listed_pieces",
    "load_tokenizer",
    "spans",
    "spans_of_ids",
    "states_after_tokens",
    "tally",
    "train_byte_pairs",
    "train_byte_pairs_by_hand",
    "visible",
    "with_new_tokens",
]
