"""What a measurement of a training step comes to: a row for each contender, for people and for machines.

In: durations, losses.  Out: `SpeedReport`.  Used by: train_speed, the command line.  Read next: train_speed.py.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from pellucid.bench.rounds import ratio

LOSS_BOUND = {"float32": 1e-3, "bfloat16": 3e-2}  # relative, after some tens of steps; seen: 1e-5, 5e-3


@dataclass(frozen=True, kw_only=True)
class SpeedRow:
    """One contender's figures; all zero if it was refused."""

    name: str
    refused: str = ""
    """Why it was not measured."""
    planned: bool = False
    """Whether the planner chose it."""
    step_seconds: float = 0.0
    ratio: float = 0.0
    """Times faster than the first row."""
    tokens_per_second: float = 0.0
    flop_per_second: float = 0.0
    share_of_ceiling: float = 0.0
    peak_bytes: int = 0
    """What tensors needed at most during a step, weights and optimizer included."""
    first_step_seconds: float = 0.0
    """Of the first loss and gradients, compiling included; not part of step_seconds."""
    loss: float = 0.0
    """Of the last step."""
    agrees: bool = True
    """Whether that is the first row's, within what its number type allows."""


@dataclass(frozen=True, kw_only=True)
class SpeedReport:
    """What was measured."""

    sizes: dict[str, Any]
    threads: int
    steps: int
    """Timed ones of each contender."""
    flop_per_step: int
    """Products and sums that the mathematics asks for, masked scores included, without the optimizer's."""
    ceilings: dict[str, float]
    """FLOP per second of a large product, by number type."""
    rows: list[SpeedRow]
    """The first is what the others are compared with."""

    @property
    def planned(self) -> SpeedRow:
        """The planner's choice."""
        return next(row for row in self.rows if row.planned)

    def as_json(self) -> dict[str, Any]:
        """Everything, for a machine to read."""
        return asdict(self)


@dataclass(kw_only=True)
class Measured:
    """A contender's figures before they are compared."""

    name: str
    precision: str
    first_step_seconds: float = 0.0
    peak_bytes: int = 0
    seconds: list[float] = field(default_factory=list)
    """Of a step, a figure for each round."""
    losses: list[float] = field(default_factory=list)

    def row(
        self, first: "Measured", *, tokens: int, flop: int, ceilings: Mapping[str, float], planned: bool
    ) -> SpeedRow:
        """Its row, beside the first one's figures.

        Args:
            first: What it is compared with.
            tokens: Of a step.
            flop: Of a step.
            ceilings: FLOP per second by number type.
            planned: Whether the planner chose it.

        Example:
            >>> plain = Measured(name="plain", precision="float32", seconds=[0.4, 0.8], losses=[3.0])
            >>> ours = Measured(name="ours", precision="float32", seconds=[0.2, 0.4], losses=[3.0])
            >>> row = ours.row(plain, tokens=30, flop=60, ceilings={"float32": 400.0}, planned=True)
            >>> row.ratio, round(row.tokens_per_second), row.share_of_ceiling, row.agrees
            (2.0, 100, 0.5, True)
        """
        step_seconds, loss, expected = median(self.seconds), self.losses[-1], first.losses[-1]
        return SpeedRow(
            name=self.name,
            planned=planned,
            step_seconds=step_seconds,
            ratio=ratio(first.seconds, self.seconds),
            tokens_per_second=tokens / step_seconds,
            flop_per_second=flop / step_seconds,
            share_of_ceiling=flop / step_seconds / ceilings[self.precision],
            peak_bytes=self.peak_bytes,
            first_step_seconds=self.first_step_seconds,
            loss=loss,
            agrees=abs(loss - expected) <= LOSS_BOUND[self.precision] * abs(expected),
        )
