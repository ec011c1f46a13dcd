"""How finely a text is to be cut: by measuring it, the number of byte pairs that its script needs, or its characters.

Byte pairs are joined from bytes, and of a script with many letters a small vocabulary can join only some: the others
stay in pieces, two or three tokens for a character, and a model spends itself on spelling. So the vocabulary is the
smallest that leaves few tokens in pieces, as far as the text is long enough to teach it; where none is, every character
is a token, unless the script is an alphabet, which byte pairs always suit.

In: a text.  Out: a `VocabularyChoice`, with the tokenizer.  Used by: train, the command line.
Read next: byte_pairs_by_hand.py.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pellucid.text.byte_pairs import SAMPLE_BYTES, EvenSample, first_tokens, learn_byte_pairs, trainable_pieces
from pellucid.text.character_table import distinct_characters
from pellucid.text.characters import character_tokenizer
from pellucid.text.tokenizer import TextTokenizer

SIZES = (512, 1024, 2048, 4096, 8192)
"""How many byte pairs are tried, the bytes themselves among them."""

MOST_PARTS = 0.03
"""The part of the tokens that may be parts of a character (docs/log.md)."""

FEW_LETTERS = 256
"""Of so many different characters or fewer, byte pairs make words even of a short text, and the few that it leaves in
pieces are always the same ones."""

CHARACTERS_PER_ID = 40
"""A vocabulary larger than the least asked for needs a text this many times as long, or most of its tokens come too
seldom to be learned."""

OCCURRENCES = 4
"""How often each character of a text must come, on average, for characters to be its tokens."""

MOST_CHARACTERS = 16_384
"""Different characters, at most, for them to be tokens: a large Chinese text has some 8,000."""

_MEASURED_CHARACTERS = 100_000
"""Of the sample, for one share: its standard error is then below 0.1 %, and it takes 0.1 s."""


@dataclass(frozen=True, kw_only=True)
class VocabularyChoice:
    """A tokenizer for a text, and why it is that one."""

    tokenizer: TextTokenizer
    """Learned from the text."""
    kind: Literal["bpe", "characters"]
    """What its tokens are."""
    vocab_size: int
    """How many there are."""
    reason: str
    """The measurement that decided, to be shown after "since"."""
    shares: Mapping[int, float]
    """For each number of byte pairs that was tried: the part of the tokens that are parts of a character."""


def choose_vocabulary(
    texts: str | Iterable[str],
    *,
    least: int = SIZES[0],
    characters_allowed: bool = True,
    sample_bytes: int | None = SAMPLE_BYTES,
) -> VocabularyChoice:
    """Choose and learn the vocabulary for a text: the fewest byte pairs of `SIZES` that keep characters whole.

    Pairs are learned once, for the largest size, since a smaller vocabulary is the beginning of a larger one.

    Args:
        texts: The text, whole or in pieces of any size; it is read once, and no more than the sample is kept.
        least: The fewest byte pairs that are worth while in a text of this size.
        characters_allowed: Whether single characters may be chosen where no size will do. Else the largest size is.
        sample_bytes: How much UTF-8 pairs are learned from, as in `train_byte_pairs`.

    Raises:
        TokenizerError: if least has no room for the bytes and the end of text, or the text holds half a character.

    Example:
        >>> choose_vocabulary(["to be or not to be, that is the question\\n" * 50]).reason
        'hardly any of its tokens is part of a character'
    """
    sample = EvenSample(sample_bytes)
    characters = distinct_characters(_sampled([texts] if isinstance(texts, str) else texts, sample))
    largest = learn_byte_pairs(sample.pieces, max(least, *SIZES))
    most = max(least, sample.characters_read // CHARACTERS_PER_ID)
    sizes = [min(size, largest.vocab_size) for size in (least, *SIZES) if least <= size <= most]
    shares: dict[int, float] = {}

    def parts(size: int) -> float:
        if size not in shares:
            shares[size] = share_of_parts(first_tokens(largest, size), sample.pieces)
        return shares[size]

    def byte_pairs(size: int, reason: str) -> VocabularyChoice:
        return _choice("bpe", first_tokens(largest, size), reason, shares)

    size = sizes[-1]
    # The largest is tried second: if it leaves too many characters in pieces, none between does better.
    if parts(sizes[0]) <= MOST_PARTS or parts(size) <= MOST_PARTS:
        size = next(size for size in sizes if parts(size) <= MOST_PARTS)
        some = parts(size) >= 0.0005  # shown as 0.1 % or more
        told = f"only {100 * parts(size):.1f} % of its tokens are parts" if some else "hardly any of its tokens is part"
        return byte_pairs(size, f"{told} of a character")
    measured = f"the most for a text of this length, {100 * parts(size):.1f} %"
    if len(characters) <= FEW_LETTERS or not characters_allowed:
        return byte_pairs(size, f"of {size:,}, {measured} of its tokens are parts of a character")
    if len(characters) > min(MOST_CHARACTERS, sample.characters_read // OCCURRENCES):
        return byte_pairs(size, f"its {len(characters):,} different characters come too seldom each")
    reason = f"of {size:,} byte pairs, {measured} would be parts of a character"
    return _choice("characters", character_tokenizer(["".join(characters)]), reason, shares)


def least_size(characters: int) -> int:
    """The fewest byte pairs that are worth while in a text of so many characters: what `train` begins at in 5 minutes.

    (Texts under 100,000 characters `train` reads in characters, with dropout, unless byte pairs are asked for.)

    Example:
        >>> least_size(100_000), least_size(1_000_000)
        (512, 1024)
    """
    return SIZES[0] if characters <= 400_000 else SIZES[1]  # the rows of train/recipe.py, found by experiment


def share_of_parts(tokenizer: TextTokenizer, pieces: Sequence[str]) -> float:
    """Measure which part of the tokens of some pieces, or of an even sample of them, are parts of a character."""
    stride = max(1, sum(map(len, pieces)) // _MEASURED_CHARACTERS)
    ids = np.concatenate([np.zeros(0, dtype=np.int64), *tokenizer.encode_batch(pieces[::stride])])
    is_part = np.array([_is_part(tokenizer.token_bytes(token_id)) for token_id in range(tokenizer.vocab_size)])
    return float(is_part[ids].mean()) if ids.size else 0.0


def _is_part(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _sampled(texts: Iterable[str], sample: EvenSample) -> Iterator[str]:
    """Pass a text on, and let the sample have of it."""
    for text in texts:
        for piece in trainable_pieces(text):
            sample.add(piece)
        yield text


def _choice(
    kind: Literal["bpe", "characters"], tokenizer: TextTokenizer, reason: str, shares: Mapping[int, float]
) -> VocabularyChoice:
    in_order = {size: shares[size] for size in sorted(shares)}
    return VocabularyChoice(
        tokenizer=tokenizer, kind=kind, vocab_size=tokenizer.vocab_size, reason=reason, shares=in_order
    )
