r"""What a text is made of, counted some pieces at a time: characters, lines, and a hash of each line.

    h(line) = Σ_i T(c_i) · P(i)  mod 2^64          T, P: tables of 64 random bits, for a character and for a place

Two different lines have one hash about once in 2^64 pairs; all lines of a piece are hashed at once. Pieces are counted
apart, on any process, and added up.

In: pieces of text.  Out: `Tally`, `tally`.  Used by: encoding_worker.py, the data card.
Read next: encoding_worker.py.
Source: Carter and Wegman, "Universal classes of hash functions" (1979), section on sums of table entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

NEWLINE = 10
FEWEST_CHARACTERS = 20
"""A shorter line ("}", "Exit", a name in a play) comes again by chance, and says nothing about copies."""

_TABLE_BITS = 16  # the planes above the first share their entries: letters there are rare


@dataclass(frozen=True)
class Tally:
    """What was counted in some pieces."""

    codes: np.ndarray
    """Their distinct characters, as code points."""
    counts: np.ndarray
    """How often each comes."""
    lines: int
    """Lines, blank ones aside."""
    hashes: np.ndarray
    """One for each line of `FEWEST_CHARACTERS` or more."""
    longest: int
    """Characters of the longest line, line ends aside."""


def tally(texts: Sequence[str]) -> Tally:
    r"""Count some pieces of text together: a table has millions, of which each alone would take longer.

    Args:
        texts: Lines; one that a piece's end cuts counts as a line.

    Returns:
        The counts.

    Example:
        >>> found = tally(["to be\nor not to be\n", "that is"])
        >>> found.lines, found.longest, dict(zip(map(chr, found.codes), found.counts.tolist()))["o"]
        (3, 12, 4)
    """
    codes = np.frombuffer("\n".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    totals = np.bincount(codes, minlength=NEWLINE + 1)
    totals[NEWLINE] -= max(0, len(texts) - 1)  # those between the pieces
    distinct = np.flatnonzero(totals)
    ends = np.append(np.flatnonzero(codes == NEWLINE), len(codes))
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    told = lengths >= FEWEST_CHARACTERS
    return Tally(
        codes=distinct.astype(np.uint32),
        counts=totals[distinct].astype(np.int64),
        lines=int(np.count_nonzero(lengths)),
        hashes=_hashes(codes, starts[told], lengths[told]),
        longest=int(lengths.max(initial=0)),
    )


def _hashes(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The hash of each stretch of codes."""
    if not len(starts):
        return np.zeros(0, dtype=np.uint64)
    of_characters, of_places = _table(1, 1 << _TABLE_BITS), _table(2, 1 << int(lengths.max()).bit_length())
    firsts = np.cumsum(lengths) - lengths  # where each line begins once the others are left out
    places = np.arange(int(lengths.sum())) - np.repeat(firsts, lengths)
    inside = codes[places + np.repeat(starts, lengths)]
    values = of_characters[inside & ((1 << _TABLE_BITS) - 1)] + (inside >> _TABLE_BITS)
    return np.add.reduceat(values * of_places[places], firsts)


@cache
def _table(seed: int, size: int) -> np.ndarray:
    """Odd random numbers, the same in every process and on every machine."""
    return np.random.Generator(np.random.PCG64(seed)).integers(0, 1 << 63, size, dtype=np.uint64) * np.uint64(2) + 1
