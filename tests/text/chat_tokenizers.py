"""Small tokenizers that know every control token of chat_templates.py, of the kinds that models come with."""

import json

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from pellucid.text import TextTokenizer, train_byte_pairs
from tests.text.chat_templates import ADDED, SPECIAL

TEXT = ["You say hello and I say goodbye. The capital of France is Paris. system user assistant model tool\n"] * 3


def byte_pairs(**flags):
    """Byte-level BPE, its special tokens with some flags."""
    return _with_tokens(Tokenizer.from_str(train_byte_pairs(TEXT, 400).definition), **flags)


def pieces(spaces):
    """SentencePiece-style, with a space before the first word, before all stretches, or put there by a normalizer."""
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    if spaces == "prepended":
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=spaces, split=False)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    every_byte = [f"<0x{byte:02X}>" for byte in range(256)]
    made.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", *every_byte], show_progress=False)
    )
    definition = json.loads(made.to_str())
    definition["added_tokens"] = definition["added_tokens"][:1]  # bytes are not special
    return _with_tokens(Tokenizer.from_str(json.dumps(definition)))


def _with_tokens(made, **flags):
    made.add_special_tokens([AddedToken(token, special=True, normalized=False, **flags) for token in SPECIAL])
    made.add_tokens([AddedToken(token, special=False, normalized=False) for token in ADDED])
    return TextTokenizer(made.to_str(), end_of_text="</s>")


KINDS = {
    "byte pairs": lambda: byte_pairs(),
    "tokens that take white space after them": lambda: byte_pairs(rstrip=True),
    "tokens that take white space before them": lambda: byte_pairs(lstrip=True),
    "pieces, a space before the first": lambda: pieces("first"),
    "pieces, a space before every stretch": lambda: pieces("always"),
    "pieces, a space put before": lambda: pieces("prepended"),
}
