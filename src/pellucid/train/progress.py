"""Where a run stands, and how fast it goes.

In: what steps and evaluations gave.  Out: `Progress`, which a checkpoint holds; `Pace`.  Used by: loop.
Read next: plan.py.
"""

import math
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pellucid.checkpoint import Checkpoint
from pellucid.train.step import StepResult
from pellucid.yardsticks import Score

COOLING_SHARE = 0.2  # of the steps done: what a decay to the end is worth most (the recipe's own is 0.6 of all)
COOLING_SECONDS = 60.0  # whoever wants to stop does not want to wait longer
COOLING_SECONDS_TOGETHER = 10.0  # torchrun ends who is still there after 30 s, and the closing takes its time too
SMOOTHED = 0.95  # how much of the running train loss a step keeps: a mean over about twenty
EVEN, ODD = slice(0, None, 2), slice(1, None, 2)


class Wish(IntEnum):
    """What whoever watches a run wants of it after a step; a plain True is a wish to stop."""

    GO_ON = 0
    STOP = 1
    COOL_DOWN = 2
    """Let the learning rate fall to its end now, and then stop."""


@dataclass
class Progress:
    """All that a checkpoint holds beside weights and optimizer."""

    steps: int
    """How many there will be."""
    planned_steps: int
    """How many the first plan had."""
    decay_begins: int
    """The last step before the rate falls."""
    step: int = 0
    """How many are done."""
    train: float | None = None
    """Running mean of the train loss, bits per character."""
    skipped: int = 0
    skipped_in_a_row: int = 0
    best_step: int = 0
    best_even: float = math.inf
    best_odd: float = math.inf
    best_held_out: float = math.inf
    best_standard_error: float | None = None
    best_bits: tuple[float, ...] = ()
    """Bits on each held-out passage."""
    last_held_out: float = math.inf
    """The latest score, best or not."""
    micro_batch_size: int | None = None
    """Rows that a process computes at once: fewer than planned after its memory did not suffice."""
    cooled_from: int | None = None
    """The step from which the rate fell to its end at once, because somebody wished to stop."""

    def count(self, result: StepResult, bits_per_character: float) -> None:
        """Take note of a step."""
        self.skipped += result.skipped
        self.skipped_in_a_row = self.skipped_in_a_row + 1 if result.skipped else 0
        if not result.skipped:
            share = max(1 - SMOOTHED, 1 / (self.step - self.skipped))  # at first a plain mean of what there is
            self.train = (
                bits_per_character if self.train is None else self.train + share * (bits_per_character - self.train)
            )

    def cooling_steps(self, step_seconds: float, together: bool = False) -> int:
        """How many steps a run that is to end now should still take while its rate falls.

        Args:
            step_seconds: What a step takes.
            together: Whether several processes compute it.

        Example:
            >>> Progress(steps=1000, planned_steps=1000, decay_begins=400, step=300).cooling_steps(0.5)
            60
        """
        wanted = max(1, round(COOLING_SHARE * self.step))
        seconds = COOLING_SECONDS_TOGETHER if together else COOLING_SECONDS
        return max(0, min(wanted, int(seconds / step_seconds), self.steps - self.step - 1))

    def evaluation_is_due(self, evaluations: int) -> bool:
        """Whether one of so many evaluations, evenly spread, comes after this step; the last is after the last step."""
        return self.step * evaluations // self.steps > (self.step - 1) * evaluations // self.steps

    def judge(self, score: Score | None) -> bool:
        """Take note of a held-out score; says whether it is the best, which the even passages decide.

        Where nothing is held out, the latest step is the best.
        """
        if score is None:
            self.best_step = self.step
            return True
        self.last_held_out = score.bits_per_character
        even = score.of_passages(EVEN).bits_per_character
        if not even < self.best_even:
            return False
        self.best_step, self.best_even = self.step, even
        self.best_odd = score.of_passages(ODD).bits_per_character
        self.best_held_out, self.best_standard_error = score.bits_per_character, score.standard_error
        self.best_bits = score.bits
        return True


def figures(score: Score | None) -> dict[str, Any]:
    """What `Evaluated` says of a score."""
    if score is None:
        return dict.fromkeys(("held_out", "standard_error", "held_out_even", "held_out_odd"))
    return {
        "held_out": score.bits_per_character,
        "standard_error": score.standard_error,
        "held_out_even": score.of_passages(EVEN).bits_per_character,
        "held_out_odd": score.of_passages(ODD).bits_per_character,
        "passage_bits": score.bits,
        "passage_characters": score.characters,
    }


def restore(checkpoint: Checkpoint) -> Progress:
    """The progress that a checkpoint holds."""
    progress = Progress(**checkpoint.state["progress"])
    progress.best_bits = tuple(progress.best_bits)
    return progress


class Pace:
    """How long steps take, everything between them included, since this process took the run up."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.first, self.begun = progress, progress.step, time.monotonic()

    def step_seconds(self) -> float:
        """Mean duration of the steps so far."""
        return (time.monotonic() - self.begun) / max(1, self.progress.step - self.first)

    def seconds_left(self) -> float:
        """Until the last step, if it goes on like this."""
        return self.step_seconds() * (self.progress.steps - self.progress.step)
