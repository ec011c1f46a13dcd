"""A tokenizer from a bare list of tokens, as files of weights carry it along instead of a `tokenizer.json`.

The list has every token in the order of ids, what kind each is, and either merges, best first (byte pairs), or a score
for each token (pieces, SentencePiece's kind). How it is meant to be used is said in a few more words.

In: a list of tokens.  Out: a `TextTokenizer`.  Used by: convert.  Read next: vocabulary.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Literal

import msgspec

from pellucid.errors import TokenizerError
from pellucid.text.tokenizer import TextTokenizer

TokenKind = Literal["plain", "special", "added", "unknown", "byte", "unused"]
"""plain: made by merging; special: never text; added: text that is found before any merging; unknown: stands for what
has no token; byte: one byte, spelled <0xE7>; unused: fills up the list."""

SPACE = "▁"
"""How pieces spell a space."""

_LONGEST_MERGED = 256
"""Characters; the longest piece of Gemma 3 has 31. The ways to make a longer one would fill the memory."""


@dataclass(frozen=True, kw_only=True)
class ListedVocabulary:
    """Tokens in the order of ids, and what they are."""

    tokens: Sequence[str]
    """Their spellings."""
    kinds: Sequence[TokenKind]
    """One each."""
    end: str | None = None
    """The token that ends a text, if none of the usual names is there."""
    begin: str | None = None
    """The token that every text begins with."""

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.kinds):
            raise _unfit("a kind for each token", f"{len(self.tokens):,} tokens and {len(self.kinds):,} kinds")
        used = self.used
        if len(set(used)) < len(used):
            seen: set[str] = set()
            twice = next(token for token in used if token in seen or seen.add(token))
            raise _unfit("each token once", f"{twice!r} twice")

    @property
    def used(self) -> list[str]:
        """The tokens that are not unused, in the order of ids."""
        return list(compress(self.tokens, (kind != "unused" for kind in self.kinds)))

    def ids(self, *, all_added: bool) -> dict[str, int]:
        """The ids of tokens, for the part of a `tokenizer.json` that merges.

        Special and added tokens at the end of the list are listed elsewhere in it, and are left out unless asked for.
        """
        is_unused = [kind == "unused" for kind in self.kinds]
        last_used = max((number for number, unused in enumerate(is_unused) if not unused), default=-1)
        end = last_used + 1
        while not all_added and end and self.kinds[end - 1] in ("special", "added"):
            end -= 1
        if any(is_unused[:last_used]):
            end = last_used + 1  # the library counts tokens to number those listed elsewhere: with gaps it miscounts
        return {token: number for number, token in enumerate(self.tokens[:end]) if not is_unused[number]}

    def added(self) -> list[dict[str, Any]]:
        """The list of tokens that are found as they stand, as a `tokenizer.json` has it."""
        plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        return [
            {"id": number, "content": token, **plain, "special": kind != "added"}
            for number, (token, kind) in enumerate(zip(self.tokens, self.kinds, strict=True))
            if kind in ("special", "added", "unknown") and token
        ]


def listed_byte_pairs(
    vocabulary: ListedVocabulary,
    merges: Sequence[tuple[str, str]],
    splits: Sequence[str],
    *,
    whole_words: bool = False,
    compose: bool = False,
) -> TextTokenizer:
    """A byte-level BPE tokenizer from a list.

    Args:
        vocabulary: Its tokens, in the stand-in characters of byte_alphabet.py.
        merges: Pairs of them, the first to be joined first.
        splits: Rules, each one cutting further what the ones before it left.
        whole_words: Whether a word that is a token is one, whatever the merges would make of it.
        compose: Whether letters and their accents are joined before (NFC).

    Raises:
        TokenizerError: if the parts do not fit together.

    Example:
        >>> listed = ListedVocabulary(tokens=["a", "b", "ab", "</s>"], kinds=["plain", "plain", "plain", "special"])
        >>> listed_byte_pairs(listed, [("a", "b")], [r"\\w+"]).encode("abba")
        array([2, 1, 0])
    """
    steps = [{"type": "Split", "pattern": {"Regex": rule}, "behavior": "Isolated", "invert": False} for rule in splits]
    spelled: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    return _tokenizer(
        vocabulary,
        vocabulary.ids(all_added=False),
        merges,
        normalizer={"type": "NFC"} if compose else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [*steps, {**spelled, "use_regex": False}]},
        decoder={**spelled, "use_regex": True},
        model={"ignore_merges": whole_words},
    )


def listed_pieces(vocabulary: ListedVocabulary, scores: Sequence[float], *, space_before: bool = True) -> TextTokenizer:
    """A SentencePiece-style tokenizer from a list: of all pairs that make a token, the best token is joined first.

    Args:
        vocabulary: Its tokens, with ▁ for a space.
        scores: One for each; higher is better.
        space_before: Whether a text begins as if a space stood before it.

    Raises:
        TokenizerError: if the parts do not fit together.

    Example:
        >>> listed = ListedVocabulary(
        ...     tokens=["<unk>", "</s>", "▁", "a", "b", "ab", "▁ab"],
        ...     kinds=["unknown", "special", *["plain"] * 5],
        ... )
        >>> listed_pieces(listed, [0, 0, -9, -9, -9, -1, -2]).encode("ab ba")
        array([6, 2, 4, 3])
    """
    if len(scores) != len(vocabulary.tokens):
        raise _unfit("a score for each token", f"{len(vocabulary.tokens):,} tokens and {len(scores):,} scores")
    unknown = [token for token, kind in zip(vocabulary.tokens, vocabulary.kinds, strict=True) if kind == "unknown"]
    replaced = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    before = [{"type": "Prepend", "prepend": SPACE}] if space_before else []
    decoders: list[dict[str, Any]] = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}]
    decoders += [{"type": "ByteFallback"}, {"type": "Fuse"}]
    decoders += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if space_before else []
    return _tokenizer(
        vocabulary,
        vocabulary.ids(all_added=True),
        _merges_by_score(vocabulary, scores),
        normalizer={"type": "Sequence", "normalizers": [*before, replaced]},
        pre_tokenizer=None,
        decoder={"type": "Sequence", "decoders": decoders},
        model={"byte_fallback": "byte" in vocabulary.kinds, "unk_token": unknown[0] if unknown else None},
    )


def _merges_by_score(vocabulary: ListedVocabulary, scores: Sequence[float]) -> list[tuple[str, str]]:
    """Every pair of tokens that makes a token, the best first; of one token's, the one that begins with more."""
    mergeable = {
        token: number
        for number, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.kinds, strict=True))
        if kind in ("plain", "added")
    }
    found = [
        (-scores[number], number, -place, token)
        for token, number in mergeable.items()
        if len(token) <= _LONGEST_MERGED
        for place in range(1, len(token))
        if token[:place] in mergeable and token[place:] in mergeable
    ]
    return [(token[:-place], token[-place:]) for _, _, place, token in sorted(found)]


def _tokenizer(
    vocabulary: ListedVocabulary,
    ids: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    *,
    model: Mapping[str, Any],
    **steps: Any,
) -> TextTokenizer:
    settings = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    settings |= {"fuse_unk": True, "byte_fallback": False, "ignore_merges": False, **model}
    definition = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": vocabulary.added(),
        **steps,
        "post_processor": _beginning(vocabulary),
        "model": {"type": "BPE", **settings, "vocab": ids, "merges": merges},
    }
    return TextTokenizer(msgspec.json.encode(definition).decode(), configured_end=vocabulary.end)


def _beginning(vocabulary: ListedVocabulary) -> dict[str, Any] | None:
    """The step of a `tokenizer.json` that puts a token before every text (its user may leave it out)."""
    begin = vocabulary.begin
    if begin is None:
        return None
    text = {"Sequence": {"id": "A", "type_id": 0}}
    token = {"id": begin, "ids": [list(vocabulary.tokens).index(begin)], "tokens": [begin]}
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": begin, "type_id": 0}}, text],
        "pair": [{"SpecialToken": {"id": begin, "type_id": 0}}, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {begin: token},
    }


def _unfit(expected: str, came: str) -> TokenizerError:
    return TokenizerError(f"{expected} in a vocabulary", came=came, remedy="use another file of the same model")
