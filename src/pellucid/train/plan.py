"""How many steps fit: time left, divided by what a step takes, after what else needs time.

In: a timed step, a deadline.  Out: `Progress` with its number of steps.  Used by: assembly.  Read next: trouble.py.
"""

import math
import time

from pellucid.train.events import Replanned
from pellucid.train.progress import Progress
from pellucid.training_config import ScheduleConfig, TrainingConfig

PAUSES_SHARE = 0.2  # of the time, for evaluations and samples at most; ten of a second each take 3 % of five minutes
WORTH_REPLANNING = 0.01  # of the steps; less, or a single step, is noise
CLOSING_SECONDS = 3.5  # the last sample, the search for copied passages, the files: 1 to 2 s; the report 1 to 1.5 s


def last_step_at(begun: float, minutes: float | None, pause_seconds: float) -> float | None:
    """When the last step, with its evaluation, should end; None for a run that has no clock."""
    return None if minutes is None else begun + 60 * minutes - CLOSING_SECONDS - pause_seconds


def affordable_evaluations(wanted: int, deadline: float | None, pause_seconds: float) -> int:
    """As many evaluations as were asked for, unless they would take more than a fifth of the time that is left.

    Example:
        >>> affordable_evaluations(10, None, pause_seconds=1.0)
        10
    """
    if deadline is None:
        return wanted
    seconds = max(0.0, deadline - time.monotonic())
    return max(1, min(wanted, int(seconds * PAUSES_SHARE / pause_seconds)))


def plan_steps(
    training: TrainingConfig,
    schedule: ScheduleConfig,
    *,
    deadline: float | None,
    step_seconds: float,
    pause_seconds: float,
    most_steps: float = math.inf,
) -> Progress:
    """A run's beginning: how many steps it will have, and where its rate begins to fall.

    A number of steps that was asked for is taken; minutes are filled, unless the text is used up before.

    Args:
        training: Steps, if they are given; evaluations.
        schedule: Where the decay begins.
        deadline: When the last step should end, on time.monotonic's clock.
        step_seconds: What a step takes.
        pause_seconds: What an evaluation with its sample takes.
        most_steps: After how many steps the text has been read as often as it is worth.

    Example:
        >>> plan_steps(TrainingConfig(steps=10), ScheduleConfig(decay_fraction=0.4), deadline=None,
        ...            step_seconds=1.0, pause_seconds=1.0).decay_begins
        6
    """
    if training.steps is not None:
        steps = training.steps
    else:
        seconds = (deadline or 0.0) - time.monotonic() - training.evaluations * pause_seconds
        steps = max(training.evaluations, int(min(seconds / step_seconds, most_steps)))
    return Progress(steps=steps, planned_steps=steps, decay_begins=decay_begins(steps, schedule))


def decay_begins(steps: int, schedule: ScheduleConfig) -> int:
    """The last step before the rate falls."""
    return steps - (round(steps * schedule.decay_fraction) if schedule.shape == "trapezoid" else 0)


def replan(
    progress: Progress, deadline: float, step_seconds: float, planned_step_seconds: float, most_steps: float
) -> Replanned:
    """Count the steps that fit until the deadline, now that real ones have been timed; as many as before if nearly so.

    Args:
        progress: Where the run stands.
        deadline: When the last step should end, on time.monotonic's clock.
        step_seconds: What a step has taken.
        planned_step_seconds: What the trial said.
        most_steps: After how many steps the text has been read as often as it is worth.
    """
    in_time = progress.step + (deadline - time.monotonic()) / step_seconds
    steps = max(progress.step + 1, int(min(in_time, most_steps)))
    is_noise = abs(steps - progress.steps) <= max(1, WORTH_REPLANNING * progress.steps)
    return Replanned(
        step=progress.step,
        old_steps=progress.steps,
        new_steps=progress.steps if is_noise else steps,
        step_seconds=step_seconds,
        planned_step_seconds=planned_step_seconds,
    )


def extended(progress: Progress, schedule: ScheduleConfig, steps: int) -> None:
    """Move the last step of a run: from here on it follows the schedule of a run that had so many from the start."""
    progress.steps, progress.decay_begins = steps, decay_begins(steps, schedule)
