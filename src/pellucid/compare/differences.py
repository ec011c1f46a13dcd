"""By how much one variant is better than another, with an interval that knows passages and seeds.

A passage that is hard is hard for every model, and a lucky seed gives all variants the same batches; so bits are
compared passage by passage and seed by seed, and only the differences are averaged:

    d = mean over seeds of (bits of one - bits of the other) / characters
    error² = error² between seeds + error² between passages        interval: d ± t · error

Both errors contain the noise of the single cells, so it is counted twice: the interval errs on the wide side. t is
Student's, with the degrees of freedom that Satterthwaite gives for the sum.

Source: Owen 2007 ("The pigeonhole bootstrap"), section 4, for rows and columns that both are samples; Cochran 1977,
equation 6.13, for passages of unequal length; Satterthwaite 1946.

In: two `Group`s.  Out: `Difference`.  Used by: comparison.  Read next: comparison.py.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pellucid.compare.groups import Group, best
from pellucid.compare.record import RunRecord
from pellucid.yardsticks import Score

# Student's t, two-sided 95 %, by degrees of freedom (any statistics text's table); between them, linear in 1 / freedom
STUDENT = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
    12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000, 120: 1.980, math.inf: 1.960,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One variant against another, in bits per character; below 0 if it is better."""

    name: str
    bits: float
    low: float | None
    """The lower end of the 95 % interval; None where there is no error to be had."""
    high: float | None
    seeds: int
    """How many were compared; 0 if the two have none in common, and means were."""
    passages: int
    """How many held-out passages were compared; 0 if they are not the same."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def difference(group: Group, baseline: Group) -> Difference | None:
    """What `group` spends more than `baseline`; None if one of them has no sound run."""
    ours, theirs = list(group.sound), list(baseline.sound)
    if not ours or not theirs:
        return None
    shared = {run.seed for run in ours} & {run.seed for run in theirs}
    if shared:
        ours, theirs = ([run for run in side if run.seed in shared] for side in (ours, theirs))
    bits = _mean(ours) - _mean(theirs)
    errors = _of_seeds(ours, theirs, bool(shared)), _of_passages(ours, theirs)
    low, high = interval(bits, [error for error in errors if error is not None])
    return Difference(
        name=group.name,
        bits=bits,
        low=low,
        high=high,
        seeds=len(shared),
        passages=len(best(ours[0]).passage_bits) if _same_passages(ours + theirs) else 0,
    )


def interval(middle: float, errors: Sequence[tuple[float, float]]) -> tuple[float | None, float | None]:
    """Around `middle`, from variances with their degrees of freedom; nothing from nothing.

    Example:
        >>> low, high = interval(1.0, [(0.01, 9)])
        >>> round(low, 4), round(high, 4)
        (0.7738, 1.2262)
    """
    if not errors:
        return None, None
    variance = sum(error for error, _ in errors)
    if variance == 0:
        return middle, middle
    freedom = variance**2 / sum(error**2 / degrees for error, degrees in errors if error)
    reach = student(freedom) * math.sqrt(variance)
    return middle - reach, middle + reach


def student(freedom: float) -> float:
    """How many standard errors 95 % of the time suffice.

    Example:
        >>> student(9), round(student(25), 2), student(0.5)
        (2.262, 2.06, 12.706)
    """
    below = max(degrees for degrees in STUDENT if degrees <= max(freedom, 1))
    above = min(degrees for degrees in STUDENT if degrees >= max(freedom, 1))
    if below == above:
        return STUDENT[below]
    share = (1 / below - 1 / freedom) / (1 / below - 1 / above)
    return STUDENT[below] + share * (STUDENT[above] - STUDENT[below])


def _mean(runs: Sequence[RunRecord]) -> float:
    return statistics.fmean(best(run).held_out for run in runs)


def _of_seeds(ours: Sequence[RunRecord], theirs: Sequence[RunRecord], paired: bool) -> tuple[float, float] | None:
    """How uncertain the mean is because there are but so many seeds: its variance and degrees of freedom."""
    if paired:
        of_seed = {run.seed: best(run).held_out for run in theirs}
        sides = [[best(run).held_out - of_seed[run.seed] for run in ours]]
    else:
        sides = [[best(run).held_out for run in side] for side in (ours, theirs)]
    sides = [side for side in sides if len(side) > 1]
    if not sides:
        return None
    return sum(statistics.variance(side) / len(side) for side in sides), sum(len(side) - 1 for side in sides)


def _of_passages(ours: Sequence[RunRecord], theirs: Sequence[RunRecord]) -> tuple[float, float] | None:
    """The same because the held-out text is but so many passages."""
    if _same_passages([*ours, *theirs]):
        characters = best(ours[0]).passage_characters
        mine, yours = (_mean_bits(side) for side in (ours, theirs))
        saved = tuple(one - other for one, other in zip(mine, yours, strict=True))
        error = Score("", saved, characters).standard_error
        return None if error is None else (error**2, len(characters) - 1)
    errors = [best(run).standard_error for run in (ours[0], theirs[0])]
    known = [error for error in errors if error is not None]
    passages = min(len(best(run).passage_bits) for run in (ours[0], theirs[0])) or 10  # the split makes ten
    return (sum(error**2 for error in known), 2 * (passages - 1)) if len(known) == 2 else None


def _mean_bits(runs: Sequence[RunRecord]) -> list[float]:
    return [statistics.fmean(bits) for bits in zip(*(best(run).passage_bits for run in runs), strict=True)]


def _same_passages(runs: Sequence[RunRecord]) -> bool:
    """Whether all were scored on the same passages of the same text."""
    kinds = {(run.facts["data"]["fingerprint"], best(run).passage_characters) for run in runs}
    return len(kinds) == 1 and bool(best(runs[0]).passage_bits)
