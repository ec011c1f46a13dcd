"""Text → batches: sources, the held-out split, token files, seeded and resumable batches.

    pieces → reading/ → look_alikes → boilerplate → survey → folders → hub → sources → corpus → split → token_file →
    token_writer → prepare → repeated_lines → card → prepared_folder → encoding → prepare_folder → prepared_text →
    shuffle → mixture → rows → batches → windows                                                      (reading order)

In: files, folders, a tokenizer.  Out: training batches and held-out windows.  Used by: train, yardsticks, the
command line.  Read next: pieces.py.
"""

from pellucid.data.batches import Batches
from pellucid.data.chats import ChatSources, are_chats, open_chats
from pellucid.data.conversations import ChatBatches, ConversationRows
from pellucid.data.corpus import builtin_corpus
from pellucid.data.encoding import Progress
from pellucid.data.look_alikes import told_differences
from pellucid.data.pieces import printable
from pellucid.data.prepare import HeldOutPiece, PreparedData, escape_bits, open_prepared, prepare
from pellucid.data.prepare_chats import PreparedChats, prepare_chats
from pellucid.data.prepare_folder import prepare_folder
from pellucid.data.prepared_folder import PreparedFolder, is_prepared
from pellucid.data.prepared_text import PreparedText, open_prepared_text
from pellucid.data.sources import Document, Sources, open_sources, read_documents, sources_of_texts
from pellucid.data.split import Passage, Split, SplitSample, passages, sample_split, split_of, training_texts
from pellucid.data.token_file import TokenFile, TokenHeader, check_vocabulary, token_type_for
from pellucid.data.token_writer import TokenWriter, WriterState
from pellucid.data.windows import IGNORED, windows

__all__ = [
    "IGNORED",
    "Batches",
    "ChatBatches",
    "ChatSources",
    "ConversationRows",
    "Document",
    "HeldOutPiece",
    "Passage",
    "PreparedChats",
    "PreparedData",
    "PreparedFolder",
    "PreparedText",
    "Progress",
    "Sources",
    "Split",
    "SplitSample",
    "TokenFile",
    "TokenHeader",
    "TokenWriter",
    "WriterState",
    "are_chats",
    "builtin_corpus",
    "check_vocabulary",
    "escape_bits",
    "is_prepared",
    "open_chats",
    "open_prepared",
    "open_prepared_text",
    "open_sources",
    "passages",
    "prepare",
    "prepare_chats",
    "prepare_folder",
    "printable",
    "read_documents",
    "sample_split",
    "sources_of_texts",
    "split_of",
    "token_type_for",
    "told_differences",
    "training_texts",
    "windows",
]
