r"""The learning rate as a pure function of the step: nothing is remembered, so nothing can be wrong after a resume.

Steps are counted from 1: step 1 is the first update, step `total` the last. Every function gives a fraction of the
peak rate. Step 1 is above 0, and the last step is exactly at the stated end.

    trapezoid   ____________            cosine   _
               /            \                   / `.
              /              \                 /    `-.
             1  w         t-d  t              1 w       t

In: a step, the total, a `ScheduleConfig`.  Out: a fraction.  Used by: train.  Read next: groups.py.
"""

import math

from pellucid.errors import ConfigError
from pellucid.training_config import ScheduleConfig


def learning_rate_fraction(step: int, total: int, config: ScheduleConfig) -> float:
    """Fraction of the peak learning rate that update number `step` uses.

    When the total is raised on a resume, the new total counts from then on: before a trapezoid's decay the fraction
    does not depend on it.

    Args:
        step: The number of the update, counted from 1. Beyond `total`, the last value holds.
        total: How many updates the run has.
        config: Shape, warm-up, decay and end.

    Returns:
        A number from 0 to 1.

    Raises:
        ConfigError: a step below 1, or a total below 0.

    Example:
        >>> config = ScheduleConfig(warm_up_steps=4, decay_fraction=0.5, final_fraction=0.1)
        >>> [round(learning_rate_fraction(step, 10, config), 2) for step in range(1, 11)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 0.82, 0.64, 0.46, 0.28, 0.1]
    """
    if step < 1 or total < 0:
        raise ConfigError(
            "a step counted from 1 and a total of 0 or more", came=f"step {step} of {total}", remedy="count from 1"
        )
    match config.shape:
        case "trapezoid":
            decay_steps = round(total * config.decay_fraction)
            return trapezoid(step, total, config.warm_up_steps, decay_steps, config.final_fraction)
        case "cosine":
            return cosine(step, total, config.warm_up_steps, config.final_fraction)
        case "constant":
            return constant(step, total, config.warm_up_steps)


def trapezoid(step: int, total: int, warm_up_steps: int, decay_steps: int, final_fraction: float) -> float:
    """Rise to 1 at `warm_up_steps`, stay, then fall over the last `decay_steps` to `final_fraction`.

    The decay has the first claim on a short run, the warm-up gets what is left of it.

    Example:
        >>> [trapezoid(step, 5, 2, 2, 0.5) for step in range(1, 6)]
        [0.5, 1.0, 1.0, 0.75, 0.5]
    """
    decay_steps = min(decay_steps, total)
    decayed = min(step, total) - (total - decay_steps)
    if decayed > 0:
        return _between(1.0, final_fraction, decayed / decay_steps)
    return _rise(step, min(warm_up_steps, total - decay_steps))


def cosine(step: int, total: int, warm_up_steps: int, final_fraction: float) -> float:
    """Rise to 1 at `warm_up_steps`, then fall along half a cosine to `final_fraction` at the last step.

    Example:
        >>> [round(cosine(step, 5, 1, 0.0), 3) for step in range(1, 6)]
        [1.0, 0.854, 0.5, 0.146, 0.0]
    """
    warm_up_steps = min(warm_up_steps, max(total - 1, 0))
    if step <= warm_up_steps:
        return _rise(step, warm_up_steps)
    fallen = min(1.0, (step - warm_up_steps) / max(total - warm_up_steps, 1))
    return _between(1.0, final_fraction, (1 - math.cos(math.pi * fallen)) / 2)


def constant(step: int, total: int, warm_up_steps: int) -> float:
    """Rise to 1 at `warm_up_steps`, then stay.

    Example:
        >>> [constant(step, 4, 2) for step in range(1, 5)]
        [0.5, 1.0, 1.0, 1.0]
    """
    return _rise(step, min(warm_up_steps, total))


def _rise(step: int, warm_up_steps: int) -> float:
    return min(1.0, step / warm_up_steps) if warm_up_steps > 0 else 1.0


def _between(start: float, end: float, share: float) -> float:
    """From start (share 0) to end (share 1), both reached exactly."""
    return start * (1 - share) + end * share
