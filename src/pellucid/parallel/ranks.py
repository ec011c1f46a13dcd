"""The processes of a run, and the little they say to each other: numbers that add up, and what the first has decided.

Alone, nothing is sent, and everything here gives back what it was given: the same code trains on one process and on
many. What is sent is numbers and JSON, never a pickle.

In: numbers, decisions.  Out: the same on every rank.  Used by: train.  Read next: launch.py.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Ranks:
    """This process among its like.

    Example:
        >>> ALONE.is_first, ALONE.sum([1.5, 2.0]), ALONE.from_first({"steps": 10})
        (True, [1.5, 2.0], {'steps': 10})
    """

    rank: int = 0
    """Its number, from 0."""
    count: int = 1
    """How many there are."""
    local_rank: int = 0
    """Its number on this machine: which of the machine's devices is its own."""

    @property
    def is_first(self) -> bool:
        """Whether this is the one that speaks and writes."""
        return self.rank == 0

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Add up, over all ranks, each of some numbers; every rank has to ask."""
        if self.count == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(total)
        return total.tolist()

    def largest(self, number: float) -> float:
        """The largest of what the ranks give; every rank has to ask."""
        if self.count == 1:
            return number
        most = torch.tensor(number, dtype=torch.float64)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        return most.item()

    def from_first(self, value: Any = None) -> Any:
        """What the first rank gives, on every rank; every rank has to ask.

        Args:
            value: Anything that JSON holds; only the first rank's counts.
        """
        if self.count == 1:
            return value
        text = json.dumps(value).encode() if self.is_first else b""
        length = torch.tensor(len(text))
        dist.broadcast(length, src=0)
        sent = torch.empty(int(length), dtype=torch.uint8)
        if self.is_first:
            sent = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        dist.broadcast(sent, src=0)
        return json.loads(sent.numpy().tobytes())

    def rehearsing(self) -> "Ranks":
        """The same rank among the same number, who does not speak to the others: to time a step of its own share."""
        return Rehearsing(self.rank, self.count, self.local_rank)

    def share(self, count: int) -> slice:
        """This rank's share of `count` things: as many for each rank, the last perhaps fewer, or none.

        Example:
            >>> [Ranks(rank, 3).share(16) for rank in range(3)]
            [slice(0, 6, None), slice(6, 12, None), slice(12, 16, None)]
        """
        each = -(-count // self.count)
        return slice(min(self.rank * each, count), min((self.rank + 1) * each, count))


class Rehearsing(Ranks):
    """A rank that keeps to itself."""

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Its own numbers."""
        return list(numbers)


ALONE = Ranks()
