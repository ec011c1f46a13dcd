"""Interleaved measurement: everyone in turn, round after round, so that whatever else the machine does meets all alike.

    round 1   a b c d        a shared machine changes speed by up to two times within minutes:
    round 2   b c d a        durations say little, ratios within a round much, and the median of those
    round 3   c d a b        over rounds more

In: contenders.  Out: durations by round, ratios.  Used by: train_speed.  Read next: speed_report.py.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

Turn = Callable[[], float]
"""Takes a contender's turn; returns its figure for the round, in seconds."""


def interleave(turns: Mapping[str, Turn], rounds: int) -> dict[str, list[float]]:
    """Let everyone take a turn in each round, beginning with another one each time.

    Example:
        >>> order = []
        >>> turns = {name: lambda name=name: float(order.append(name) or 1) for name in "abc"}
        >>> interleave(turns, rounds=2)["a"], "".join(order)
        ([1.0, 1.0], 'abcbca')
    """
    names = list(turns)
    figures: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names) if names else 0
        for name in names[first:] + names[:first]:
            figures[name].append(turns[name]())
    return figures


def ratio(others: Sequence[float], own: Sequence[float]) -> float:
    """How many times faster than `others` somebody was, round by round; the median of these.

    Example:
        >>> ratio([1.0, 2.0, 9.0], [0.5, 1.0, 1.0])  # the third round met a busy machine
        2.0
    """
    return median(other / mine for other, mine in zip(others, own, strict=True))
