"""Guessing what comes next from what came before: the last few ids have often been seen in the same order.

    ... the city of ROME . In the city of | R  O  M  E  .      the last ids stood there before: guess what followed

Names, quotations, code and tables repeat themselves; then several ids are read in one step. Where guesses fail, fewer
are made, down to none, and now and then one is tried again.

In: the ids of a sequence.  Out: a few ids that may follow.  Used by: decode.  Read next: decode.py.
"""

from collections.abc import Sequence

LONGEST, SHORTEST = 4, 2
"""How many last ids are looked for, the longer first; one alone is met by chance too often."""


class Guesser:
    """Guesses for one sequence, and how they have fared.

    Args:
        most: How many ids to guess at a time, at most; 0: never any.

    Source: prompt lookup decoding (Saxena 2023), a special case of speculative decoding (Leviathan et al. 2023) with
    the sequence itself as the draft model.

    Example:
        >>> Guesser(3).guess([1, 2, 3, 4, 5, 1, 2, 3], most=10)
        [4, 5, 1]
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._wanted = float(most)
        self._seen = 0
        self._after: dict[tuple[int, ...], int] = {}
        self._before: dict[tuple[int, ...], int] = {}

    def guess(self, sequence: Sequence[int], most: int) -> list[int]:
        """The ids that followed the last ones when they stood there before.

        Args:
            sequence: All ids so far; between calls it only grows.
            most: How many there is room for.
        """
        if self.most == 0:
            return []
        self._remember(sequence)
        wanted = min(int(self._wanted), most)
        if wanted < 1:
            self._wanted = min(float(self.most), self._wanted + 1 / 16)  # a failure is forgotten after some 16 tokens
            return []
        for length in range(LONGEST, SHORTEST - 1, -1):
            place = self._before.get(tuple(sequence[-length:]))
            if place is not None:
                return list(sequence[place : place + wanted])
        return []

    def learn(self, guessed: int, right: int) -> None:
        """Say how many of the last guesses were right."""
        if guessed:
            wanted = self._wanted + 1 if right == guessed else self._wanted / 2 + right
            self._wanted = min(float(self.most), max(0.5, wanted))

    def _remember(self, sequence: Sequence[int]) -> None:
        """Note, for each run of ids, the place behind its latest occurrence before the last one."""
        for end in range(self._seen + 1, len(sequence) + 1):
            for length in range(SHORTEST, LONGEST + 1):
                if length <= end:
                    run = tuple(sequence[end - length : end])
                    if run in self._after:
                        self._before[run] = self._after[run]
                    self._after[run] = end
        self._seen = len(sequence)
