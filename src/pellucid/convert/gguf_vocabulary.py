"""The vocabulary inside a GGUF file as a tokenizer: the same ids as the model was trained on.

A file lists its tokens and merges (or scores), and names the rule by which byte-level words are cut; the rule itself
stands in llama.cpp's source, and here, in `RULES`. What a file does not say at all is whether letters and accents were
joined before (Qwen2's tokenizer does that, and llama.cpp does not): here it is as the model was trained.

In: the metadata of a file.  Out: a `TextTokenizer`.  Used by: convert.  Read next: gguf_file.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pellucid.errors import ModelFileError
from pellucid.text import (
    GPT2_SPLIT,
    QWEN35_SPLIT,
    ListedVocabulary,
    TextTokenizer,
    TokenKind,
    listed_byte_pairs,
    listed_pieces,
)

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS_AND_SPACE = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3_SPLIT = rf"{_CONTRACTIONS}|{_LETTERS}|\p{{N}}{{1,3}}|{_SIGNS_AND_SPACE}"
"""Letters with the sign or space before them, up to three digits, signs with the line ends after them."""
QWEN2_SPLIT = rf"{_CONTRACTIONS}|{_LETTERS}|\p{{N}}|{_SIGNS_AND_SPACE}"
"""The same with each digit alone."""
_CAPITALS, _SMALL = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
TEKKEN_SPLIT = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_CAPITALS}]*[{_SMALL}]+|[^\r\n\p{{L}}\p{{N}}]?[{_CAPITALS}]+[{_SMALL}]*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Mistral's own from Nemo on: a word ends where a capital follows small letters. llama.cpp's takes letters without case
for small ones alone (MODELaé), for want of these classes."""


@dataclass(frozen=True)
class Rule:
    """How a byte-level tokenizer cuts words."""

    splits: tuple[str, ...]
    """One regular expression after the other."""
    whole_words: bool = False
    """Whether a word that is a token is one, whatever the merges would make of it."""
    compose: bool = False
    """Whether letters and their accents are joined before (NFC)."""


_GPT2 = Rule((GPT2_SPLIT,))
_LLAMA3 = Rule((LLAMA3_SPLIT,), whole_words=True)
_QWEN2 = Rule((QWEN2_SPLIT,), compose=True)
_TEKKEN = Rule((TEKKEN_SPLIT,), whole_words=True)
_DIGITS_ALONE = Rule((r"\p{N}", GPT2_SPLIT))
_FALLBACK = Rule((r"[\p{P}\$\+<=>\^~\|]+", GPT2_SPLIT, r"\p{N}+", "[0-9][0-9][0-9]"))

RULES: dict[str, Rule] = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "trillion", "gigachat", "mellum", "exaone4", "a.x-4.0"), _GPT2),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "midm-2.0"), _LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe"), Rule((LLAMA3_SPLIT,))),  # OLMo-2 is written as dbrx
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez", "kormo"), _QWEN2),
    "stablelm2": Rule((QWEN2_SPLIT,)),
    "qwen35": Rule((QWEN35_SPLIT,)),
    "tekken": _TEKKEN,
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"), _DIGITS_ALONE),
    "default": _FALLBACK,
}
"""By tokenizer.ggml.pre. Source: llama.cpp, src/llama-vocab.cpp, and the tokenizer.json of each model."""

_BEGUN = [pre for pre, rule in RULES.items() if rule in (_LLAMA3, _TEKKEN)]
"""Rules whose texts begin with a BOS where the file does not say. Source: llama.cpp, src/llama-vocab.cpp."""

ENDS = frozenset(
    ("<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<EOT>")
)
"""Special tokens that end what a model writes, whatever its file says: many files name one end where there are two.
Source: llama.cpp, src/llama-vocab.cpp."""

_KINDS: dict[int, TokenKind] = {1: "plain", 2: "unknown", 3: "special", 4: "added", 5: "unused", 6: "byte"}


def read_vocabulary(metadata: Mapping[str, Any], source: str) -> TextTokenizer:
    """The tokenizer of a file.

    Args:
        metadata: What the file says of itself.
        source: What messages call the file.

    Raises:
        ModelFileError: if the file has no vocabulary, or one of a kind that is not known here.
        TokenizerError: if its parts do not fit together.
    """
    kind, tokens = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise _unreadable("a list of tokens", "none", source)
    numbers = metadata.get("tokenizer.ggml.token_type", [1] * len(tokens))
    if not isinstance(numbers, list) or not _KINDS.keys() >= set(numbers):
        raise _unreadable("kinds of tokens from 1 to 6", "others", source)
    vocabulary = ListedVocabulary(
        tokens=tokens,
        kinds=[_KINDS[number] for number in numbers],
        end=_token(metadata, "tokenizer.ggml.eos_token_id", tokens, source),
        begin=_begin(metadata, tokens, source),
    )
    if kind == "gpt2":
        return _byte_pairs(metadata, vocabulary, source)
    if kind == "llama":
        scores = metadata.get("tokenizer.ggml.scores")
        if not isinstance(scores, list):
            raise _unreadable("a score for each token", "none", source)
        space_before = metadata.get("tokenizer.ggml.add_space_prefix", True)
        return listed_pieces(vocabulary, scores, space_before=bool(space_before))
    raise _unreadable("a vocabulary of byte pairs (gpt2) or pieces (llama)", f"{kind!r}", source)


def end_ids(metadata: Mapping[str, Any], tokenizer: TextTokenizer) -> frozenset[int]:
    """Ids that end what the model writes: a text, a turn, a message; all that the file names or that are known by name.

    Args:
        metadata: What the file says of itself.
        tokenizer: What `read_vocabulary` made of it.
    """
    told = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    named = (token_id for token, token_id in tokenizer.special_tokens.items() if token in ENDS)
    return frozenset(one for one in (*told, *named) if type(one) is int and 0 <= one < tokenizer.vocab_size)


def _byte_pairs(metadata: Mapping[str, Any], vocabulary: ListedVocabulary, source: str) -> TextTokenizer:
    pre = metadata.get("tokenizer.ggml.pre", "default")
    rule = RULES.get(pre) if isinstance(pre, str) else None
    if rule is None:
        raise _unreadable(f"words cut by a known rule ({', '.join(RULES)})", f"{pre!r}", source)
    merges = metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list):
        raise _unreadable("a list of merges", "none", source)
    pairs = []
    for merge in map(str, merges):
        place = merge.find(" ", 1)  # not at 0: a token may begin with a space
        left, right = merge[:place], merge[place + 1 :]
        if place < 0 or not right:
            raise _unreadable("merges of two tokens", f"{merge!r}", source)
        pairs.append((left, right))
    return listed_byte_pairs(vocabulary, pairs, rule.splits, whole_words=rule.whole_words, compose=rule.compose)


def _begin(metadata: Mapping[str, Any], tokens: list[str], source: str) -> str | None:
    """The token before every text; where the file does not say whether there is one, what llama.cpp does."""
    pre = metadata.get("tokenizer.ggml.pre")
    begins = metadata.get("tokenizer.ggml.model") == "llama" or pre in _BEGUN
    if not metadata.get("tokenizer.ggml.add_bos_token", begins):
        return None
    return _token(metadata, "tokenizer.ggml.bos_token_id", tokens, source)


def _token(metadata: Mapping[str, Any], key: str, tokens: list[str], source: str) -> str | None:
    token_id = metadata.get(key)
    if token_id is None:
        return None
    if not isinstance(token_id, int) or not 0 <= token_id < len(tokens):
        raise _unreadable(f"{key} from 0 to {len(tokens) - 1:,}", repr(token_id), source)
    return tokens[token_id]


def _unreadable(expected: str, came: str, source: str) -> ModelFileError:
    return ModelFileError(
        f"{expected} in {source}", came=came, remedy="import the Hugging Face folder of the same model instead"
    )
