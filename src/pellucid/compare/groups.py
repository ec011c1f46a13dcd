"""Runs that differ in their seed alone belong together: they are one variant, and their spread is its luck.

In: `RunRecord`s.  Out: `Group`s; what differs between them.  Used by: comparison.  Read next: differences.py.
"""

import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.compare.record import Reading, RunRecord

NOT_A_VARIANT = ("text", "computed", "device")  # a text's name is not the text, and the rest is rounding


@dataclass(frozen=True)
class Group:
    """One variant, with a run for each seed."""

    name: str
    runs: tuple[RunRecord, ...]

    @property
    def text(self) -> str:
        """The fingerprint of its text."""
        return self.runs[0].facts["data"]["fingerprint"]

    @property
    def sound(self) -> tuple[RunRecord, ...]:
        """Its runs that have a score and did not diverge."""
        return tuple(run for run in self.runs if run.best is not None and not run.diverged)

    def mean(self, figure: Callable[[RunRecord], float]) -> float | None:
        """The mean of a figure over its sound runs."""
        return statistics.fmean(map(figure, self.sound)) if self.sound else None

    @property
    def held_out(self) -> float | None:
        """Bits per character at each run's best step, the mean over seeds."""
        return self.mean(lambda run: best(run).held_out)

    @property
    def standard_error(self) -> float | None:
        """How far other held-out passages would move `held_out`; the mean over seeds, which share the passages."""
        errors = [error for run in self.sound if (error := best(run).standard_error) is not None]
        return statistics.fmean(errors) if errors else None

    @property
    def spread(self) -> float | None:
        """The standard deviation of `held_out` between seeds; None for a single one."""
        figures = [best(run).held_out for run in self.sound]
        return statistics.stdev(figures) if len(figures) > 1 else None


def best(run: RunRecord) -> Reading:
    """The best reading of a sound run."""
    assert run.best is not None
    return run.best


def grouped(runs: Sequence[RunRecord]) -> list[Group]:
    """The runs by variant, in the order in which they were given; each group by seed.

    A seed that comes again with the same settings is no other luck: its run stands apart, and adds nothing to a spread.
    """
    kinds: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        settings = tuple((name, value) for name, value in run.settings().items() if name not in NOT_A_VARIANT)
        time = sum(run.seed == other.seed for key, kind in kinds.items() if key[1:] == settings for other in kind)
        kinds.setdefault((time, *settings), []).append(run)
    names = _names([tuple(run.path for run in kind) for kind in kinds.values()])
    return [
        Group(name, tuple(sorted(kind, key=lambda run: run.seed)))
        for name, kind in zip(names, kinds.values(), strict=True)
    ]


def differing(groups: Sequence[Group]) -> dict[str, list[Any]]:
    """Settings that are not the same in all groups: for each, its value in every group.

    What only some releases know is left out: it was then what it had always been.
    """
    settings = [group.runs[0].settings() for group in groups]
    known = [name for name in settings[0] if all(name in one for one in settings)]
    values = {name: [one[name] for one in settings] for name in known}
    return {name: row for name, row in values.items() if any(value != row[0] for value in row)}


def _names(groups: Sequence[tuple[Path, ...]]) -> list[str]:
    """A name for each group: what its folders' names have in common, or their paths; no two groups have one name."""
    spoken = [
        [_common([path.absolute().name for path in paths]) for paths in groups],
        [", ".join(path.absolute().name for path in paths) for paths in groups],
        [_common([str(path) for path in paths]) for paths in groups],
        [", ".join(map(str, paths)) for paths in groups],
    ]
    return [
        next((name for name, row in zip(names, spoken, strict=True) if row.count(name) == 1), names[-1])
        for names in zip(*spoken, strict=True)
    ]


def _common(names: Sequence[str]) -> str:
    """The variant's name within those of its folders.

    Example:
        >>> _common(["no-norm-seed-0", "no-norm-seed-10"]), _common(["book-01", "book-02"]), _common(["book-01"])
        ('no-norm', 'book', 'book-01')
    """
    stems = {re.sub(r"-seed-\d+$", "", name) for name in names}
    if len(stems) == 1:
        return stems.pop()
    return _beginning(sorted(stems)).rstrip("-_.0123456789") or names[0]


def _beginning(names: Sequence[str]) -> str:
    """What all of these sorted names begin with."""
    first, last = names[0], names[-1]
    length = next(
        (place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first)
    )
    return first[:length]
