"""One text → training text and ten held-out passages, as a stream.

    characters   0 ─────────────────────────────────────────────▶ n
    tenths       ├────────train────────┬held┤├───train───┬held┤ …

Held out is the last 5 % of each tenth of the concatenation, counted in characters: passages from all over the text,
each right after text of its own kind. A cut moves forward, never past 32 characters, to the end of a grapheme, so that
no letter is parted from its marks. Cuts, seams and ends of files all open a new document.

In: `Sources`.  Out: `Passage`, `passages`, `training_texts`, `SplitSample`, `sample_split`.
Used by: prepare.py, tokenizer training, yardsticks.  Read next: token_file.py.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pellucid.data.sources import Sources
from pellucid.errors import DataError

TENTHS = 10
HELD_OUT_PERCENT = 5
SMALLEST_TEXT = TENTHS * 100 // HELD_OUT_PERCENT  # 200 characters: one held out in each tenth
LONGEST_SHIFT = 32  # characters; no real grapheme is longer
SAMPLE_BYTES = 2_500_000  # what xz and all n-grams get through in about 3 s on one core

Side = Literal["training", "held_out"]


@dataclass(frozen=True)
class Passage:
    """A stretch of one document on one side of the split; `opens` is true where a document, or a side, begins."""

    text: str
    side: Side
    tenth: int
    opens: bool


def cut_places(characters: int) -> list[tuple[int, int]]:
    """Say where each tenth's held-out passage begins and ends.

    Tenth k is [n·k // 10, n·(k+1) // 10); its last 5 %, rounded down, are held out.

    Args:
        characters: Length n of the text.

    Returns:
        For each tenth, the first held-out character and the one after the last.

    Raises:
        DataError: if the text is too short for every tenth to hold out a character.

    Example:
        >>> cut_places(1000)[:2]
        [(95, 100), (195, 200)]
    """
    if characters < SMALLEST_TEXT:
        raise DataError(
            f"at least {SMALLEST_TEXT} characters of text, so that each tenth can hold out one (the held-out split)",
            came=f"{characters:,}",
            remedy="give a longer text",
        )
    ends = [characters * k // TENTHS for k in range(TENTHS + 1)]
    return [(end - (end - start) * HELD_OUT_PERCENT // 100, end) for start, end in itertools.pairwise(ends)]


def passages(sources: Sources) -> Iterator[Passage]:
    """Read the sources once, cut into training and held-out passages.

    Args:
        sources: The text.

    Yields:
        Passages in the order of the text, together all of it.

    Raises:
        DataError: if the text is too short, or has changed since it was surveyed.
    """
    bounds = [place for pair in cut_places(sources.characters) for place in pair]
    side_number, position, opens = 0, 0, True
    for piece in sources.pieces():
        opens = opens or piece.opens
        start, text = 0, piece.text
        while start < len(text):
            end = len(text)
            crosses = side_number < len(bounds) - 1 and bounds[side_number] <= position + len(text)
            if crosses:
                # a shift leaves the other side one character at least, and never leaves the piece
                room = min(LONGEST_SHIFT, bounds[side_number + 1] - bounds[side_number] - 1)
                end = _grapheme_end(text, bounds[side_number] - position, room)
            if end > start:
                side: Side = "held_out" if side_number % 2 else "training"
                yield Passage(text[start:end], side, side_number // 2, opens)
                opens = False
            if crosses:
                side_number, opens = side_number + 1, True
            start = end
        position += len(text)


def training_texts(sources: Sources) -> Iterator[str]:
    """Read the training side alone: what a tokenizer may learn from.

    Args:
        sources: The text.

    Yields:
        Passages of at most 65,536 characters.
    """
    return (passage.text for passage in passages(sources) if passage.side == "training")


@dataclass(frozen=True)
class SplitSample:
    """The two sides of the split in memory, whole or a stated part.

    Attributes:
        training: For each tenth its training text, or the last part of it.
        held_out: For each tenth its held-out passage, or the first part of it.
        complete: Whether that is all of the text.
        share: The part of the text's characters that is here.
    """

    training: tuple[str, ...]
    held_out: tuple[str, ...]
    complete: bool
    share: float


def sample_split(sources: Sources, *, utf8_bytes: int = SAMPLE_BYTES) -> SplitSample:
    """Bring both sides into memory, or of a long text the parts next to each cut.

    Args:
        sources: The text.
        utf8_bytes: About how much to keep; a tenth keeps its share, in the proportion of the split.

    Returns:
        Ten training texts and ten held-out passages.

    Example:
        >>> from pellucid.data.sources import Document, sources_of_texts
        >>> sample = sample_split(sources_of_texts([Document("a", "abcde" * 80)]))
        >>> len(sample.training), len(sample.training[0]), sample.held_out[0], sample.complete
        (10, 38, 'de', True)
    """
    complete = sources.utf8_bytes <= utf8_bytes
    characters = sources.characters if complete else sources.characters * utf8_bytes // sources.utf8_bytes
    held_out_limit = max(1, characters * HELD_OUT_PERCENT // (100 * TENTHS))
    training_limit = max(1, characters // TENTHS - held_out_limit)
    training = [_LastCharacters(sources.characters if complete else training_limit) for _ in range(TENTHS)]
    held_out: list[list[str]] = [[] for _ in range(TENTHS)]
    for passage in passages(sources):
        if passage.side == "training":
            training[passage.tenth].add(passage.text)
        else:
            held_out[passage.tenth].append(passage.text)
    sides = (
        tuple(kept.text() for kept in training),
        tuple("".join(texts)[: None if complete else held_out_limit] for texts in held_out),
    )
    return SplitSample(*sides, complete=complete, share=sum(len(t) for s in sides for t in s) / sources.characters)


class _LastCharacters:
    """The end of a text that passes by."""

    def __init__(self, limit: int) -> None:
        self._limit, self._length, self._texts = limit, 0, deque()

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._length += len(text)
        while self._length - len(self._texts[0]) >= self._limit:
            self._length -= len(self._texts.popleft())

    def text(self) -> str:
        text = "".join(self._texts)
        return text[max(0, len(text) - self._limit) :]


def _grapheme_end(text: str, at: int, room: int) -> int:
    """Move a cut forward while it would part a letter from its marks."""
    last = min(len(text), at + room)
    while 0 < at < last and (_extends(text[at]) or text[at - 1] == "\u200d"):
        at += 1
    return at


def _extends(character: str) -> bool:
    """Whether a character belongs to the one before it: a mark, a joiner, a skin tone, a tag."""
    return (
        unicodedata.category(character)[0] == "M"
        or character in "\u200c\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )
