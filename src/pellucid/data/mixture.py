"""Several texts in stated proportions: which part does the n-th row of a run come from, and which of its rows is it?

The rows of the parts are laid out evenly: among the first n rows a part of weight w has w·n of them, wrong by 1/2 at
most for two parts, and by less than 1 for any number. The pattern comes again after as many rows as the weights have
for a common denominator, so that the n-th row is looked up, not counted to.

In: weights.  Out: `Mixture`, `parse_weights`.  Used by: batches.py, prepared_text.py.  Read next: rows.py.
Source: Tijdeman, "The chairman assignment problem" (1980): no sequence keeps closer to all weights at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pellucid.errors import ConfigError

LONGEST_PERIOD = 100_000  # rows: weights with up to five decimals are kept exactly, others to within that


class Mixture:
    """The order in which rows of parts come.

    Args:
        weights: Of each part; positive. Only their proportion counts.

    Attributes:
        weights: The proportions that are kept, which sum to 1.

    Example:
        >>> mixture = Mixture([Fraction(2), Fraction(1)])
        >>> [places.tolist() for places in mixture.places(np.arange(6))]
        [[0, 1, 0, 0, 1, 0], [0, 0, 1, 2, 1, 3]]
    """

    def __init__(self, weights: Sequence[Fraction]) -> None:
        shares = _shares(weights)
        self._period = sum(shares)
        self.weights = tuple(Fraction(share, self._period) for share in shares)
        self._shares = np.array(shares)
        self._parts = _pattern(shares)
        self._ranks = np.empty(self._period, dtype=np.int64)  # how many rows of the same part stand before, in a period
        for part, share in enumerate(shares):
            self._ranks[self._parts == part] = np.arange(share)

    def places(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Say where rows come from.

        Args:
            rows: Their numbers in the run, from 0.

        Returns:
            For each row its part, and its number among that part's rows, from 0.
        """
        periods, inside = np.divmod(rows, self._period)
        parts = self._parts[inside]
        return parts, periods * self._shares[parts] + self._ranks[inside]


def parse_weights(text: str, count: int) -> tuple[Fraction, ...]:
    """Read weights as somebody writes them.

    Args:
        text: Numbers with commas between them: 0.7,0.3 or 7,3.
        count: How many there must be.

    Returns:
        The weights, exactly.

    Raises:
        ConfigError: if there are more or fewer, or one is no positive number.

    Example:
        >>> parse_weights("0.7, 0.3", 2)
        (Fraction(7, 10), Fraction(3, 10))
    """
    words = [word.strip() for word in text.split(",")]
    remedy = f"give {count} positive numbers with commas between them, as in {','.join(['1'] * count)}"
    if len(words) != count:
        raise ConfigError(f"{count} weights, one for each prepared folder", came=f"{len(words)}", remedy=remedy)
    try:
        weights = tuple(Fraction(word) for word in words)
    except (ValueError, ZeroDivisionError):
        raise ConfigError("weights that are numbers", came=f"“{text}”", remedy=remedy) from None
    if min(weights) <= 0:
        raise ConfigError("weights above 0", came=f"“{text}”", remedy=f"{remedy}, or leave a folder out")
    return weights


def _shares(weights: Sequence[Fraction]) -> list[int]:
    """Whole rows of each part in a period, in the proportion of the weights, exactly or nearly."""
    total = sum(weights)
    exact = [weight / total for weight in weights]
    period = math.lcm(*(share.denominator for share in exact))
    if period <= LONGEST_PERIOD:
        return [int(share * period) for share in exact]
    shares = [max(1, int(share * LONGEST_PERIOD)) for share in exact]
    while sum(shares) < LONGEST_PERIOD:  # what rounding down has left over, to whom it is most due
        shares[max(range(len(shares)), key=lambda part: exact[part] * LONGEST_PERIOD - shares[part])] += 1
    return shares


def _pattern(shares: Sequence[int]) -> np.ndarray:
    """The part of each row of a period: of those that may come, the one that would be late first.

    All is multiplied by the period and by 2k - 2, for k parts, so that it is in whole numbers.
    """
    period, scale = sum(shares), max(1, 2 * len(shares) - 2)
    slack = period  # 1 / (2k - 2)
    given = [0] * len(shares)
    pattern = np.empty(period, dtype=np.int64)
    for row in range(period):
        due = [share * (row + 1) * scale - count * period * scale for share, count in zip(shares, given, strict=True)]
        may_come = [part for part in range(len(shares)) if due[part] >= slack] or range(len(shares))
        chosen = min(may_come, key=lambda part: Fraction((given[part] + 1) * scale * period - slack, shares[part]))
        pattern[row] = chosen
        given[chosen] += 1
    return pattern
