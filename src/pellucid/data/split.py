"""One text → training text and ten held-out passages, as a stream.

    characters   0 ─────────────────────────────────────────────▶ n
    tenths       ├────────train────────┬held┤├───train───┬held┤ …

Held out is the last 5 % of each tenth of the concatenation, counted in characters: passages from all over the text,
each right after text of its own kind. A cut moves forward, never past 32 characters, to the end of a grapheme, so that
no letter is parted from its marks. Cuts, seams and ends of files all open a new document.

Of many documents, whole ones are held out instead: every 20th, beginning with the one of the first 20 that brings the
sum of characters nearest to 5 %. What is held out is then cut into ten passages of equal length, so that the figure has
an error as ever. And who wants everything used holds out nothing.

In: `Sources`.  Out: `Split`, `split_of`, `Passage`, `passages`, `training_texts`, `SplitSample`, `SplitSampler`,
`sample_split`, `most_held_out`.
Used by: prepare.py, tokenizer training, yardsticks.  Read next: token_file.py.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pellucid.data.sources import HELD_OUT_PERCENT, Sources
from pellucid.errors import DataError
from pellucid.text.graphemes import graphemes

TENTHS = 10
SMALLEST_TEXT = TENTHS * 100 // HELD_OUT_PERCENT  # 200 characters: one held out in each tenth
FEWEST_DOCUMENTS = 20  # with fewer, a twentieth is no whole document
LARGEST_DOCUMENT = 0.1  # of the text; if a larger one fell to either side, that side would be about it
LONGEST_SHIFT = 32  # characters; no real grapheme is longer
FIRST_FLAG_LETTER, LAST_FLAG_LETTER = "\U0001f1e6", "\U0001f1ff"
SAMPLE_BYTES = 2_500_000  # what xz and all n-grams get through in about 3 s on one core

Side = Literal["training", "held_out"]


@dataclass(frozen=True)
class Passage:
    """A stretch of one document on one side of the split; `opens` is true where a document, or a side, begins.

    `tenth` counts tenths of the text; of held-out documents, tenths of what is held out.
    """

    text: str
    side: Side
    tenth: int
    opens: bool


@dataclass(frozen=True)
class Split:
    """How a text is split, to be told and recorded.

    Attributes:
        kind: "passages" for the end of each tenth, "documents" for whole ones, "none" for everything to training.
        percent: How much was to be held out.
        held_out_characters: How much is.
        documents: How many documents there are.
        first: The first held-out document, counted from 0, and `every` which it goes on from there; 0 for the others.
        every: See `first`.
    """

    kind: Literal["passages", "documents", "none"]
    percent: int
    held_out_characters: int
    documents: int
    first: int = 0
    every: int = 0

    @property
    def held_out_documents(self) -> range:
        """The numbers of the documents that are held out whole."""
        return range(self.first, self.documents, self.every) if self.every else range(0)

    @property
    def sentence(self) -> str:
        """What a user is told."""
        if self.kind == "none":
            return "Held out: nothing, as asked; so no figure will say how the model does on text it has not read."
        if self.kind == "passages":
            return f"Held out: the last {self.percent} % of each tenth of the text."
        whole = len(self.held_out_documents)
        return (
            f"Held out: {whole:,} of {self.documents:,} documents whole, {self.held_out_characters:,} characters"
            f" (one in {self.every}, beginning with number {self.first + 1})."
        )


def split_of(sources: Sources) -> Split:
    """Say how a text is split.

    Args:
        sources: The text.

    Returns:
        The split; the same for the same text.

    Raises:
        DataError: if the text is too short for every tenth to hold out a character.

    Example:
        >>> from pellucid.data.sources import Document, sources_of_texts
        >>> split_of(sources_of_texts([Document("a", "abcde" * 80)])).sentence
        'Held out: the last 5 % of each tenth of the text.'
    """
    percent, documents, lengths = sources.held_out_percent, len(sources.documents), sources.documents.characters
    if not percent:
        return Split("none", 0, 0, documents)
    if sources.hold_out_documents and documents >= FEWEST_DOCUMENTS:
        every = round(100 / percent)
        sums = np.array([lengths[first::every].sum() for first in range(every)])
        first = int(np.abs(sums * 100 - sources.characters * percent).argmin())
        if lengths.max() <= LARGEST_DOCUMENT * sources.characters and sums[first] >= TENTHS:
            return Split("documents", percent, int(sums[first]), documents, first, every)
    held_out = sum(end - cut for cut, end in cut_places(sources.characters, percent))
    return Split("passages", percent, held_out, documents)


def cut_places(characters: int, percent: int = HELD_OUT_PERCENT) -> list[tuple[int, int]]:
    """Say where each tenth's held-out passage begins and ends.

    Tenth k is [n·k // 10, n·(k+1) // 10); its last 5 %, rounded down, are held out.

    Args:
        characters: Length n of the text.
        percent: How much to hold out, if not 5 %.

    Returns:
        For each tenth, the first held-out character and the one after the last.

    Raises:
        DataError: if the text is too short for every tenth to hold out a character.

    Example:
        >>> cut_places(1000)[:2]
        [(95, 100), (195, 200)]
    """
    smallest = TENTHS * -(-100 // percent)
    if characters < smallest:
        raise DataError(
            f"at least {smallest} characters of text, so that each tenth can hold out one (the held-out split)",
            came=f"{characters:,}",
            remedy="give a longer text, or use all of it with --held-out 0",
        )
    ends = [characters * k // TENTHS for k in range(TENTHS + 1)]
    return [(end - (end - start) * percent // 100, end) for start, end in itertools.pairwise(ends)]


def passages(sources: Sources) -> Iterator[Passage]:
    """Read the sources once, cut into training and held-out passages.

    Args:
        sources: The text.

    Yields:
        Passages in the order of the text, together all of it.

    Raises:
        DataError: if the text is too short, or has changed since it was surveyed.
    """
    split = split_of(sources)
    if split.kind == "passages":
        bounds = [place for pair in cut_places(sources.characters, split.percent) for place in pair]
        cuts = _Cuts(bounds)
        for piece in sources.pieces():
            for text, side, opens in cuts.parts(piece.text, opens=piece.opens):
                yield Passage(text, "held_out" if side % 2 else "training", side // 2, opens)
        return
    held_out, document, position = split.held_out_documents, -1, 0
    cuts = _Cuts([split.held_out_characters * k // TENTHS for k in range(1, TENTHS + 1)])
    for piece in sources.pieces():
        document += piece.opens
        if document in held_out:
            for text, tenth, opens in cuts.parts(piece.text, opens=piece.opens):
                yield Passage(text, "held_out", tenth, opens)
        else:
            yield Passage(piece.text, "training", position * TENTHS // sources.characters, piece.opens)
        position += len(piece.text)


class _Cuts:
    """Cuts a text that comes in pieces at given places, the last its end, each moved to the end of a grapheme."""

    def __init__(self, bounds: Sequence[int]) -> None:
        self._bounds = bounds
        self._stretch = self._position = 0
        self._cut = True  # whether a cut was the last thing

    def parts(self, piece: str, *, opens: bool) -> Iterator[tuple[str, int, bool]]:
        """The parts of the next piece, the number of the stretch each is in, and whether a document or side opens."""
        self._cut = self._cut or opens
        start, bounds = 0, self._bounds
        while start < len(piece):
            end, stretch = len(piece), self._stretch
            crosses = stretch < len(bounds) - 1 and bounds[stretch] <= self._position + len(piece)
            if crosses:
                # a shift leaves the next stretch one character at least, and never leaves the piece
                room = min(LONGEST_SHIFT, bounds[stretch + 1] - bounds[stretch] - 1)
                end = _grapheme_end(piece, bounds[stretch] - self._position, room)
            if end > start:
                yield piece[start:end], stretch, self._cut
                self._cut = False
            if crosses:
                self._stretch, self._cut = stretch + 1, True
            start = end
        self._position += len(piece)


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
        held_out: For each tenth its held-out passage, or the first part of it; nothing if all is for training.
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
    sampler = SplitSampler(sources, utf8_bytes=utf8_bytes)
    for passage in passages(sources):
        sampler.add(passage)
    return sampler.sample()


class SplitSampler:
    """What `sample_split` keeps, for whoever reads the passages anyway.

    Args:
        sources: The text.
        utf8_bytes: About how much to keep.
    """

    def __init__(self, sources: Sources, *, utf8_bytes: int = SAMPLE_BYTES) -> None:
        self._characters = sources.characters
        self._most = most = most_held_out(sources, utf8_bytes=utf8_bytes)
        limit = sources.characters
        if most is not None:
            limit = max(1, sources.characters * utf8_bytes // sources.utf8_bytes // TENTHS - most)
        self._training = [_LastCharacters(limit) for _ in range(TENTHS)]
        self._held_out = [_FirstCharacters(most) for _ in range(TENTHS)]

    def add(self, passage: Passage) -> None:
        """Let the next passage go by."""
        (self._training if passage.side == "training" else self._held_out)[passage.tenth].add(passage.text)

    def sample(self) -> SplitSample:
        """What was kept, when all have gone by."""
        training = tuple(kept.text() for kept in self._training)
        held_out = tuple(text for kept in self._held_out if (text := kept.text()))
        share = sum(map(len, training + held_out)) / self._characters
        return SplitSample(training, held_out, complete=self._most is None, share=share)


def most_held_out(sources: Sources, *, utf8_bytes: int | None = None) -> int | None:
    """How many characters of each held-out passage are scored, its first; None for all, in a text that is not long.

    The rest of a long passage is not trained on either. Whoever scores goes by this, so that all figures are of the
    same characters.

    Args:
        sources: The text.
        utf8_bytes: About how much of a text is looked at; None for `SAMPLE_BYTES`.

    Returns:
        Characters of each tenth.
    """
    utf8_bytes = utf8_bytes or SAMPLE_BYTES
    if sources.utf8_bytes <= utf8_bytes:
        return None
    characters = sources.characters * utf8_bytes // sources.utf8_bytes
    return max(1, characters * sources.held_out_percent // (100 * TENTHS))


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


class _FirstCharacters:
    """The beginning of a text that passes by."""

    def __init__(self, limit: int | None) -> None:
        self._limit, self._texts, self._length = limit, list[str](), 0

    def add(self, text: str) -> None:
        kept = text if self._limit is None else text[: self._limit - self._length]
        if kept:
            self._texts.append(kept)
            self._length += len(kept)

    def text(self) -> str:
        return "".join(self._texts)


def _grapheme_end(text: str, at: int, room: int) -> int:
    """Move a cut forward while it would part a letter from its marks."""
    last = min(len(text), at + room)
    if not 0 < at < last:
        return at
    start = max(0, at - 2 * LONGEST_SHIFT)
    while start and FIRST_FLAG_LETTER <= text[start - 1] <= LAST_FLAG_LETTER:  # which two are a flag shows at the first
        start -= 1
    place = start
    for grapheme in graphemes(text[start:last]):
        place += len(grapheme)
        if place >= at:
            return place
    return last
