"""Which passages of a long text are worth looking at: its beginning, the hardest for a model, and the easiest.

In: scored documents.  Out: `Passage`, `chosen_passages`.  Used by: heat_map.py, the command line.
Read next: heat_map.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pellucid.inspection.scored_text import ScoredDocument

SHOWN_WHOLE = 4000  # tokens: about ten printed pages; more is not looked at, and makes a page slow
BEGINNING = 1000  # tokens of a longer text
STRETCH = 200  # tokens in which the hardest and the easiest are looked for
SMALLEST_STRETCH = 40  # tokens; a few words are hard or easy by chance
HARDEST, EASIEST = 1600, 800  # tokens of each kind, together

Why = Literal["whole", "beginning", "hardest", "easiest"]


@dataclass(frozen=True)
class Passage:
    """Some tokens of a document.

    Attributes:
        document: Its number.
        first: The first token, counted without the end of text that the document begins with.
        stop: The one after the last.
        why: Why it is shown.
    """

    document: int
    first: int
    stop: int
    why: Why


def chosen_passages(documents: Sequence[ScoredDocument]) -> list[Passage]:
    """The whole of a text, or of a long one some passages.

    Args:
        documents: The text.

    Returns:
        Passages that do not overlap: the beginning, then the hardest first, then the easiest first.
    """
    lengths = [len(document.ids) for document in documents]
    if sum(lengths) <= SHOWN_WHOLE:
        return [Passage(number, 0, length, "whole") for number, length in enumerate(lengths) if length]
    opening = next(number for number, length in enumerate(lengths) if length)
    beginning = Passage(opening, 0, min(BEGINNING, lengths[opening]), "beginning")
    stretches = [
        (number, first, min(first + STRETCH, length))
        for number, length in enumerate(lengths)
        for first in range(beginning.stop if number == opening else 0, length, STRETCH)
    ]
    long = [stretch for stretch in stretches if stretch[2] - stretch[1] >= SMALLEST_STRETCH] or stretches
    by_bits = sorted(long, key=lambda stretch: _bits_per_character(documents[stretch[0]], *stretch[1:]))
    hardest = _within(by_bits[::-1], HARDEST)
    easiest = _within([stretch for stretch in by_bits if stretch not in hardest], EASIEST)
    return [
        beginning,
        *(Passage(*stretch, "hardest") for stretch in hardest),
        *(Passage(*stretch, "easiest") for stretch in easiest),
    ]


def characters_of(document: ScoredDocument, first: int, stop: int) -> tuple[int, int]:
    """Where some tokens of a document begin and end, in characters.

    Args:
        document: The document.
        first: The first token.
        stop: The one after the last.

    Returns:
        The first character and the one after the last.
    """
    length = document.score.characters
    begin = int(document.starts[first]) if first else 0
    return begin, int(document.starts[stop]) if stop < len(document.starts) else length


def _bits_per_character(document: ScoredDocument, first: int, stop: int) -> float:
    begin, end = characters_of(document, first, stop)
    return float(document.nats[first:stop].sum(dtype=np.float64)) / math.log(2) / max(1, end - begin)


def _within(stretches: Sequence[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
    """The first of some stretches, so many tokens together at most."""
    kept, tokens = [], 0
    for stretch in stretches:
        tokens += stretch[2] - stretch[1]
        if tokens > most:
            break
        kept.append(stretch)
    return kept
