"""Several runs as one comparison: variants, their differences from the first, and what was equal for all.

In: paths of run folders.  Out: `Comparison`.  Used by: in_words, compare_page, the command line.
Read next: in_words.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pellucid.compare.differences import Difference, difference
from pellucid.compare.groups import Group, best, differing, grouped
from pellucid.compare.record import RunRecord, read_run
from pellucid.compare.series import read_series
from pellucid.errors import RunFolderError

SAME = {"seconds": 0.05, "FLOPs": 0.01}
"""What is no difference, as a part of the largest: a machine is never the same, and norms' few weights are counted."""
BATCHES = ("text.fingerprint", "text.held_out", "tokenizer.fingerprint", "batch_size", "model.context_length", "steps")
"""Settings that decide, with the seed, what a run reads at each step."""


@dataclass(frozen=True)
class Comparison:
    """Runs side by side; the first variant that has a result is what the others are measured against."""

    groups: tuple[Group, ...]
    stopped: Mapping[str, str] = field(default_factory=dict)
    """Runs that left no folder because their numbers went bad at once: by name, a sentence."""

    @property
    def runs(self) -> list[RunRecord]:
        """All runs."""
        return [run for group in self.groups for run in group.runs]

    @property
    def baseline(self) -> Group | None:
        """What the others are measured against."""
        return next((group for group in self.groups if group.sound), None)

    def differences(self) -> list[Difference]:
        """Every other variant against the baseline, if it was scored on the same text."""
        baseline = self.baseline
        others = [group for group in self.groups if group is not baseline]
        found = [difference(group, baseline) for group in others if group.text == baseline.text] if baseline else []
        return [one for one in found if one is not None]

    def settings(self) -> dict[str, list[Any]]:
        """What is not the same in all variants."""
        return differing(self.groups)

    def same(self, *names: str) -> bool:
        """Whether these settings are the same in all runs."""
        settings = [run.settings() for run in self.runs]
        return all(one[name] == settings[0][name] for one in settings for name in names)

    @property
    def same_batches(self) -> bool:
        """Whether all variants read the same tokens in the same order."""
        seeds = [{run.seed for run in group.runs} for group in self.groups]
        return self.same(*BATCHES) and all(one == seeds[0] for one in seeds)

    def costs(self) -> dict[str, list[float]]:
        """Steps, tokens, FLOPs and seconds of each variant, the mean over its runs."""
        figures = {
            "steps": [[float(run.step) for run in group.runs] for group in self.groups],
            "tokens": [[float(run.tokens) for run in group.runs] for group in self.groups],
            "FLOPs": [[run.flops for run in group.runs] for group in self.groups],
            "seconds": [[run.seconds for run in group.runs] for group in self.groups],
        }
        return {name: [sum(one) / len(one) for one in rows] for name, rows in figures.items()}

    def as_json(self) -> dict[str, Any]:
        """Everything, for a machine."""
        return {
            "variants": [_group_as_json(group) for group in self.groups],
            "baseline": self.baseline.name if self.baseline else None,
            "differences": [asdict(one) | {"is_clear": one.is_clear} for one in self.differences()],
            "settings": self.settings(),
            "same_batches": self.same_batches,
            "equal": {name: is_equal(name, values) for name, values in self.costs().items()},
            "stopped": dict(self.stopped),
        }


def compare(paths: Iterable[str | Path]) -> Comparison:
    """Read runs and sort them into variants.

    Args:
        paths: Run folders, or folders of run folders: a recipe's own says which and in which order.

    Raises:
        RunFolderError: if a path holds no run, or there are not two things to compare.
    """
    folders: dict[Path, None] = {}
    stopped: dict[str, str] = {}
    for path in map(Path, paths):
        series = read_series(path)
        folders |= dict.fromkeys(_run_folders(path, None if series is None else series.runs))
        if series is None:
            continue
        for name in series.runs:
            if name in series.stopped and not (path / name / "run.json").exists():
                stopped[name] = series.stopped[name].sentence
    if len(folders) + len(stopped) < 2:
        raise RunFolderError(
            "two runs or more",
            came="one" if folders else "none",
            remedy="name their folders, or a folder that holds several",
        )
    return Comparison(tuple(grouped([read_run(folder) for folder in folders])), stopped)


def is_equal(name: str, values: Sequence[float]) -> bool:
    """Whether a cost is the same for all; seconds and FLOPs may differ a little.

    Example:
        >>> is_equal("steps", [300, 301]), is_equal("seconds", [300, 301])
        (False, True)
    """
    return max(values) - min(values) <= SAME.get(name, 0.0) * max(values)


def _run_folders(path: Path, names: Sequence[str] | None) -> list[Path]:
    """The run at `path`, or the runs in it: those of these names, or all."""
    if not path.is_dir() or (path / "run.json").exists():
        return [path]
    inside = sorted(run.parent for run in path.glob("*/run.json"))
    if names is not None:
        inside = sorted((run for run in inside if run.name in names), key=lambda run: names.index(run.name))
    return inside or ([] if names else [path])


def _group_as_json(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "bits_per_character": group.held_out,
        "standard_error": group.standard_error,
        "spread": group.spread,
        "runs": [_run_as_json(run) for run in group.runs],
    }


def _run_as_json(run: RunRecord) -> dict[str, Any]:
    return {
        "path": str(run.path),
        "seed": run.seed,
        "parameters": run.plan["parameters"],
        "steps": run.step,
        "of_steps": run.plan["steps"],
        "tokens": run.tokens,
        "flops": run.flops,
        "seconds": run.seconds,
        "completed": run.completed,
        "diverged": run.diverged,
        "best_step": best(run).step if run.best else None,
        "bits_per_character": best(run).held_out if run.best else None,
        "readings": [asdict(reading) for reading in run.readings],
    }
