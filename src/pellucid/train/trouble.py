"""What is said when a run cannot go on.

In: what was seen.  Out: a `TrainingStopped`.  Used by: loop.  Read next: loop.py.
"""

from collections.abc import Mapping
from pathlib import Path

from pellucid.errors import TrainingStopped


def beyond_repair(
    came: str, learning_rates: Mapping[str, float], saved: Path | None, first: str = ""
) -> TrainingStopped:
    """The end of a run whose numbers are no longer finite.

    Args:
        came: What was seen, with its step.
        learning_rates: By role.
        saved: The last good checkpoint.
        first: Which module's numbers went bad first, from `first_non_finite.told`.

    Example:
        >>> print(beyond_repair("a loss of nan", {"matrices": 0.04}, None))
        Expected losses and gradients that are finite, but got a loss of nan (learning rates: matrices 0.04): lower ...
    """
    rates = ", ".join(f"{role} {rate:.3g}" for role, rate in learning_rates.items())
    return TrainingStopped(
        "losses and gradients that are finite",
        came=f"{came} (learning rates: {rates})" + (f"; {first}" if first else ""),
        remedy="lower the learning rates (--optimizer.matrix-learning-rate), or train with --precision float32; "
        + (f"the last good checkpoint is {saved}" if saved else "nothing had been saved yet"),
    )
