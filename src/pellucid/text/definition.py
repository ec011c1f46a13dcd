"""What a `tokenizer.json` says about itself: its kind, its end-of-text token, the bytes of each token.

In: the parsed file.  Out: facts about it.  Used by: tokenizer.py.  Read next: tokenizer.py.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from pellucid.text.byte_alphabet import unspell
from pellucid.text.splitting import GPT2_SPLIT, QWEN35_SPLIT

Kind = Literal["characters", "bpe", "other"]
Definition = Mapping[str, Any]

END_OF_TEXT = "<|endoftext|>"
"""What tokenizers made here call the end of a text."""

KNOWN_ENDS = (
    END_OF_TEXT,  # GPT-2, Qwen, SmolLM2, Phi
    "<|end_of_text|>",  # Llama 3
    "</s>",  # Llama 2, Mistral
    "<eos>",  # Gemma
    "<｜end▁of▁sentence｜>",  # DeepSeek
)
"""Names of end-of-text tokens in other people's tokenizers, tried in this order."""

EVERY_CHARACTER = r"[\s\S]"
"""The split of character tokenizers. A dot would leave out the line end."""

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


def outline_of(text: str) -> Definition:
    """Parse all of a tokenizer.json but its vocabulary and its merges: as objects, those of Gemma 3 take 200 MB.

    Example:
        >>> outline_of('{"normalizer": null, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}')
        {'normalizer': None, 'model': {'type': 'BPE'}}
    """
    parts = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    model = msgspec.json.decode(parts["model"], type=dict[str, msgspec.Raw])
    outline = {name: msgspec.json.decode(part) for name, part in parts.items() if name != "model"}
    return {**outline, "model": {"type": msgspec.json.decode(model["type"])} if "type" in model else {}}


def fingerprint_of(definition: Definition) -> str:
    """Hash what a tokenizer.json means: sha256 of its JSON with sorted keys and no layout.

    Line ends, indentation and the order of keys do not change the meaning and do not change the hash.

    Example:
        >>> fingerprint_of({"a": 1, "b": 2}) == fingerprint_of({"b": 2, "a": 1})
        True
    """
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def kind_of(definition: Definition) -> Kind:
    """Tell whether a tokenizer takes single characters, merges bytes, or does something else."""
    model = definition["model"]
    splits_characters = definition.get("pre_tokenizer") == _split(EVERY_CHARACTER)
    if model.get("type") == "WordLevel" and splits_characters and definition.get("normalizer") is None:
        return "characters"
    decoders = _parts(definition.get("decoder"), "decoders")
    is_byte_level = bool(decoders) and all(part["type"] in ("ByteLevel", "Fuse") for part in decoders)
    return "bpe" if model.get("type") == "BPE" and is_byte_level else "other"


def may_be_cut(definition: Definition) -> bool:
    """Tell whether a long text may be cut by `cut_between_words` without changing its ids."""
    if definition.get("normalizer") is not None or not all(token["special"] for token in added_tokens(definition)):
        return False
    match _parts(definition.get("pre_tokenizer"), "pretokenizers"):
        case [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]:
            return True
        case [split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]:
            return split in (_split(GPT2_SPLIT), _split(QWEN35_SPLIT))
        case _:
            return False


def added_tokens(definition: Definition) -> list[dict[str, Any]]:
    """List the tokens that are found in a text as they stand, special ones among them."""
    return definition.get("added_tokens") or []


def find_end_of_text(tokens: Iterable[str], asked: str | None, configured: str | None) -> str | None:
    """Choose the end-of-text token: the one asked for, else a known name, else the configured end of sequence.

    A known name comes before the configuration because chat models configure the end of a turn.

    Example:
        >>> find_end_of_text(["<|endoftext|>", "<|im_end|>"], None, "<|im_end|>")
        '<|endoftext|>'
    """
    there = set(tokens)
    wanted = (asked,) if asked is not None else (*KNOWN_ENDS, configured)
    return next((name for name in wanted if name in there), None)


def bytes_of_tokens(definition: Definition, ids: Mapping[str, int]) -> list[bytes]:
    """Give the bytes each id stands for, in id order; none for special tokens and for ids without a token.

    For byte-level and character tokenizers this is exact. For others it is what the token adds in the middle of a text
    (`▁the` is ` the`, `<0xE7>` is one byte), which their decoders may still trim at its start.
    """
    added = {token["content"]: token["special"] for token in added_tokens(definition)}
    kind, decoder = kind_of(definition), json.dumps(definition.get("decoder"), ensure_ascii=False)
    table = [b""] * (max(ids.values(), default=-1) + 1)
    for token, token_id in ids.items():
        if token in added:
            table[token_id] = b"" if added[token] else token.encode("utf-8")
        elif kind == "bpe":
            spelled = unspell(token)
            table[token_id] = token.encode("utf-8") if spelled is None else spelled
        elif kind == "other":
            table[token_id] = _bytes_of_piece(token, decoder)
        else:
            table[token_id] = token.encode("utf-8")
    return table


def missing_bytes(table: Iterable[bytes]) -> frozenset[int]:
    """Bytes of UTF-8 that byte pairs cannot begin with: there is no token for them (SmolLM2 has none for 0xF1).

    Example:
        >>> sorted(missing_bytes([bytes([byte]) for byte in range(256) if byte != 0xF1]))
        [241]
    """
    single = {token[0] for token in table if len(token) == 1}
    return frozenset((*range(0xC0), *range(0xC2, 0xF5))) - single  # the others are in no UTF-8


def is_surrogate(character: str) -> bool:
    """Tell whether a character is half of one and no text: UTF-8 has no bytes for it."""
    return "\ud800" <= character <= "\udfff"


def _bytes_of_piece(piece: str, decoder: str) -> bytes:
    if "ByteFallback" in decoder and (fallback := _BYTE_FALLBACK.fullmatch(piece)):
        return bytes.fromhex(fallback[1])
    return piece.replace("▁", " ").encode("utf-8") if "▁" in decoder else piece.encode("utf-8")


def _parts(step: Any, plural: str) -> list[Any]:
    """Unpack a Sequence of pre-tokenizers or decoders; one alone is a list of one."""
    if step is None:
        return []
    return step[plural] if step["type"] == "Sequence" else [step]


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
