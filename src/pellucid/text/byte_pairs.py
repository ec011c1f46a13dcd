"""Byte-level BPE: learning it from a text with the `tokenizers` library, or taking it from a vocabulary and merges.

Every text can be written with the 256 bytes; each learned token joins the two tokens that stood beside each other most
often. The library does the work; byte_pairs_by_hand.py shows how it is done.

In: texts; or a vocabulary and merges.  Out: a `TextTokenizer`.  Used by: train, prepare, convert.
Read next: vocabulary.py.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import tokenizers as library
from tokenizers import decoders, models, pre_tokenizers, trainers

from pellucid.errors import TokenizerError
from pellucid.text.byte_alphabet import NUM_BYTES, spell, utf8
from pellucid.text.definition import END_OF_TEXT
from pellucid.text.splitting import GPT2_SPLIT, QWEN35_SPLIT, cut_between_words
from pellucid.text.tokenizer import TextTokenizer

SAMPLE_BYTES = 4_000_000
"""How much text pairs are counted in. Plenty for some thousand tokens; ordinary text takes 1 s, and the worst, without
any white space, 8 s and 0.5 GB on two cores."""

_PIECE = 16_384
"""Characters of a piece, the unit of the sample: 4 MB are some hundred pieces from all over the text."""

_LONGEST_PIECE = 2 * _PIECE
"""Where a piece is cut though no word ends."""

_LONGEST_WORD_BYTES = 256
"""Words are cut here for training only. One word of 0.2 MB takes the library 28 s, of 50 MB all memory."""

_RAREST_PAIR = 2
"""A pair that occurs once makes a token nothing else can be learned about."""


@dataclass(frozen=True, kw_only=True)
class BytePairProgress:
    """How far the learning of a byte-pair vocabulary has come."""

    stage: Literal["reading", "merging", "done"]
    """reading: the sample is being drawn; merging: pairs are being counted and joined; done: the vocabulary stands."""
    characters_read: int
    """Characters of the text so far."""
    characters_used: int
    """Characters that pairs are counted in: all, or an even sample of a large text."""
    vocab_size: int
    """The size asked for; when done, the size reached."""
    vocab_size_asked: int
    """The size asked for."""

    def __str__(self) -> str:
        used = f"{self.characters_used:,} characters"
        if self.characters_used < self.characters_read:
            used += f" taken evenly from all {self.characters_read:,}"
        match self.stage:
            case "reading":
                return f"reading text for a vocabulary: {self.characters_read:,} characters"
            case "merging":
                return f"learning a vocabulary of {self.vocab_size:,} tokens from {used}"
            case "done" if self.vocab_size < self.vocab_size_asked:
                return (
                    f"{self.vocab_size:,} tokens learned, not the {self.vocab_size_asked:,} asked for: "
                    f"no pair is left that occurs {_RAREST_PAIR} times in {used}; the model uses {self.vocab_size:,}"
                )
            case _:
                return f"{self.vocab_size:,} tokens learned from {used}"


def train_byte_pairs(
    texts: str | Iterable[str],
    vocab_size: int,
    *,
    sample_bytes: int | None = SAMPLE_BYTES,
    on_progress: Callable[[BytePairProgress], None] | None = None,
) -> TextTokenizer:
    """Learn a byte-level BPE vocabulary: the end of text, 256 bytes, and merges up to `vocab_size` tokens.

    The text is cut into words by `QWEN35_SPLIT`, and where it spells the end of text; no merge reaches across.

    Args:
        texts: The text, whole or in pieces of any size; no more than the sample is kept in memory.
        vocab_size: How many tokens there shall be. If the text has too few pairs, there are fewer.
        sample_bytes: From a longer text, pieces spread evenly over it are used, up to this many bytes of UTF-8.
            None: use all of it.
        on_progress: Called with each stage; `str` of what it gets is a sentence to show.

    Returns:
        The tokenizer; its `vocab_size` is the size reached.

    Raises:
        TokenizerError: if vocab_size has no room for the bytes and the end of text.

    Source: Sennrich et al. 2016, on bytes as in Radford et al. 2019. Ties go to the pair of lowest ids, as in the
        library; the algorithm by hand gives them to the lexicographically greatest pair, as in the course.

    Example:
        >>> tokenizer = train_byte_pairs(["low lower lowest " * 9], 260)
        >>> [tokenizer.token_bytes(token_id) for token_id in tokenizer.encode("slowest")]
        [b's', b'low', b'e', b's', b't']
    """
    specials = [END_OF_TEXT]
    require_room_for_bytes(vocab_size, specials)
    report = on_progress or (lambda progress: None)
    sample = EvenSample(sample_bytes)
    for text in [texts] if isinstance(texts, str) else texts:
        for piece in trainable_pieces(text):
            sample.add(piece)
        report(_progress("reading", sample, vocab_size, vocab_size))
    report(_progress("merging", sample, vocab_size, vocab_size))
    tokenizer = learn_byte_pairs(sample.pieces, vocab_size)
    report(_progress("done", sample, tokenizer.vocab_size, vocab_size))
    return tokenizer


def learn_byte_pairs(pieces: Sequence[str], vocab_size: int) -> TextTokenizer:
    """Learn a vocabulary from all of some pieces of text, as `train_byte_pairs` from its sample of a text."""
    built = _byte_level(models.BPE(), QWEN35_SPLIT)
    words = built.pre_tokenizer
    # After ByteLevel a character is a byte, so this cuts at bytes.
    cut = pre_tokenizers.Split(library.Regex(f".{{{_LONGEST_WORD_BYTES}}}"), "isolated")
    built.pre_tokenizer = pre_tokenizers.Sequence([words, cut])
    built.train_from_iterator(
        pieces,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=_RAREST_PAIR,
            special_tokens=[END_OF_TEXT],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    built.pre_tokenizer = words
    return TextTokenizer(built.to_str(pretty=True))


def first_tokens(tokenizer: TextTokenizer, vocab_size: int) -> TextTokenizer:
    """Give the tokenizer that `learn_byte_pairs` had been at so many tokens: pairs are joined one after the other.

    Args:
        tokenizer: A learned one.
        vocab_size: How many of its tokens to keep. If it has no more, it is given back.

    Raises:
        TokenizerError: if vocab_size has no room for the bytes and the end of text.

    Example:
        >>> largest = train_byte_pairs(["low lower lowest " * 9], 262)
        >>> first_tokens(largest, 259).fingerprint == train_byte_pairs(["low lower lowest " * 9], 259).fingerprint
        True
    """
    require_room_for_bytes(vocab_size, [END_OF_TEXT])
    if vocab_size >= tokenizer.vocab_size:
        return tokenizer
    definition = json.loads(tokenizer.definition)
    model = definition["model"]
    ids = {token: token_id for token, token_id in model["vocab"].items() if token_id < vocab_size}
    # Each merge makes one new token: inside a token the same joins happen wherever it stands.
    model |= {"vocab": ids, "merges": model["merges"][: vocab_size - NUM_BYTES - 1]}
    return TextTokenizer(library.Tokenizer.from_str(json.dumps(definition)).to_str(pretty=True))


def byte_pair_tokenizer(
    vocab: Mapping[int, bytes], merges: Sequence[tuple[bytes, bytes]], special_tokens: Sequence[str] = (END_OF_TEXT,)
) -> TextTokenizer:
    """Make a tokenizer of a byte-level vocabulary that is already there: GPT-2's, or one learned by hand.

    Words are cut by `GPT2_SPLIT`, as when the vocabulary was learned.

    Args:
        vocab: The bytes of each id.
        merges: Pairs of tokens in the order they were learned.
        special_tokens: Which tokens are special. The end of text must be one; one that is not in vocab goes to its end.

    Raises:
        TokenizerError: if vocab lacks a byte or a part of a merge, or has no end of text.

    Example:
        >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"he"}
        >>> byte_pair_tokenizer(vocab, [(b"h", b"e")]).encode("the").tolist()
        [116, 256]
    """
    specials = set(map(utf8, special_tokens))
    ids = {spell(token): token_id for token_id, token in vocab.items() if token not in specials}
    needed = [bytes([byte]) for byte in range(NUM_BYTES)] + [part for left, right in merges for part in (left, right)]
    missing = next((part for part in needed if spell(part) not in ids), None)
    if missing is not None:
        raise TokenizerError(
            "a vocabulary with all 256 bytes and both parts of every merge",
            came=f"one without {missing!r}",
            remedy="give the vocabulary that belongs to these merges",
        )
    ids |= {token.decode("utf-8"): token_id for token_id, token in vocab.items() if token in specials}
    for token in special_tokens:
        ids.setdefault(token, max(ids.values()) + 1)
    built = _byte_level(
        models.BPE(vocab=ids, merges=[(spell(left), spell(right)) for left, right in merges]), GPT2_SPLIT
    )
    built.add_special_tokens(list(special_tokens))
    return TextTokenizer(built.to_str(pretty=True))


def require_room_for_bytes(vocab_size: int, special_tokens: Sequence[str]) -> None:
    """Refuse a vocabulary that is smaller than the 256 bytes and the special tokens.

    Raises:
        TokenizerError: with both numbers.
    """
    needed = NUM_BYTES + len(special_tokens)
    if vocab_size < needed:
        counted = f"{len(special_tokens)} special token{'' if len(special_tokens) == 1 else 's'}"
        raise TokenizerError(
            f"a vocabulary of at least {needed} tokens (256 bytes and {counted})",
            came=str(vocab_size),
            remedy=f"ask for {needed} or more, or use a character tokenizer",
        )


def _byte_level(model: models.BPE, rule: str) -> library.Tokenizer:
    built = library.Tokenizer(model)
    split = pre_tokenizers.Split(library.Regex(rule), "isolated")
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    built.decoder = decoders.ByteLevel()
    return built


def trainable_pieces(text: str) -> Iterator[str]:
    """Cut a text into pieces to sample and count pairs in, and where it spells the end of text."""
    for part in text.split(END_OF_TEXT):
        for piece in cut_between_words(part, _PIECE):
            # Most pieces are a word longer than asked for; only where words do not end are they much longer.
            for start in range(0, len(piece), _LONGEST_PIECE):
                yield piece[start : start + _LONGEST_PIECE]


class EvenSample:
    """Every stride-th piece of a text of unknown length; the stride doubles when the pieces grow too many.

    Args:
        most_bytes: How much UTF-8 the pieces may come to. None: any amount, and every piece is kept.
    """

    def __init__(self, most_bytes: int | None) -> None:
        self.pieces: list[str] = []
        self.characters_read = 0
        self._most_bytes, self._bytes, self._seen, self._stride = most_bytes, 0, 0, 1

    @property
    def characters_used(self) -> int:
        """Characters of the pieces kept."""
        return sum(map(len, self.pieces))

    def add(self, piece: str) -> None:
        """Keep the next piece of the text, or pass it by."""
        self.characters_read += len(piece)
        if self._seen % self._stride == 0:
            self.pieces.append(piece)
            self._bytes += len(utf8(piece))
        self._seen += 1
        while self._most_bytes is not None and self._bytes > self._most_bytes and len(self.pieces) > 1:
            self.pieces, self._stride = self.pieces[::2], 2 * self._stride
            self._bytes = sum(len(utf8(kept)) for kept in self.pieces)


def _progress(
    stage: Literal["reading", "merging", "done"], sample: EvenSample, vocab_size: int, asked: int
) -> BytePairProgress:
    return BytePairProgress(
        stage=stage,
        characters_read=sample.characters_read,
        characters_used=sample.characters_used,
        vocab_size=vocab_size,
        vocab_size_asked=asked,
    )
