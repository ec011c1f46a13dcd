"""What a run left behind, read as far as it can be read: a report is about runs that ended badly, too.

A line of metrics.jsonl that is no event is counted and passed over; a field that is missing is None. Steps, of which
there may be a million, are kept as columns of numbers.

In: a run folder.  Out: `Record`, `read_record`.  Used by: every file of this room.  Read next: spaced.py.
"""

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from pellucid.checkpoint import RunFolder

COLUMNS = ("step", "bits_per_character", "train", "gradient_norm", "tokens_per_second", "epoch")
"""What is kept of each step, beside its learning rates."""


@dataclass
class Steps:
    """The steps, as columns of equal length; what a step did not say is NaN."""

    columns: dict[str, array] = field(default_factory=lambda: {name: array("d") for name in COLUMNS})
    rates: dict[str, array] = field(default_factory=dict)
    skipped: list[tuple[int, str]] = field(default_factory=list)
    """The steps that were not finite, and what was first not finite."""

    def __len__(self) -> int:
        return len(self.columns["step"])

    def __getitem__(self, name: str) -> array:
        return self.columns[name]

    def add(self, event: Mapping[str, Any]) -> None:
        """Take note of a `StepDone`."""
        for name, column in self.columns.items():
            column.append(number(event.get(name)))
        rates = event.get("learning_rates")
        for name, rate in (rates if isinstance(rates, Mapping) else {}).items():
            column = self.rates.setdefault(str(name), array("d"))
            column.extend([math.nan] * (len(self) - 1 - len(column)))
            column.append(number(rate))
        if event.get("skipped") is True:
            self.skipped.append((int(number(event.get("step"), 0)), text(event.get("not_finite"))))


@dataclass
class Record:
    """A run, as its folder tells it."""

    path: Path
    facts: Mapping[str, Any]
    """run.json."""
    steps: Steps
    others: dict[str, list[dict[str, Any]]]
    """Every other event, by its name, in order."""
    unread: int = 0
    """Lines that are no events."""

    def all(self, event: str) -> list[dict[str, Any]]:
        """The events of a name."""
        return self.others.get(event, [])

    def last(self, event: str) -> dict[str, Any]:
        """The last event of a name; empty if there is none."""
        return (self.all(event) or [{}])[-1]

    def fact(self, *names: str) -> Any:
        """What run.json says at this address; None if it says nothing there."""
        found: Any = self.facts
        for name in names:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    @property
    def name(self) -> str:
        """What the run is called."""
        return text(self.fact("name")) or self.path.absolute().name

    @property
    def last_step(self) -> int:
        """How many steps were done."""
        ended = number(self.last("Finished").get("step"))
        done = [step for step in self.steps["step"] if math.isfinite(step)]
        return int(ended if math.isfinite(ended) else max(done, default=0.0))


def read_record(folder: RunFolder) -> Record:
    """Read what there is.

    Raises:
        OSError: if metrics.jsonl is there and the disk does not give it.
    """
    record = Record(folder.path, folder.facts, Steps(), {})
    if not folder.metrics_path.exists():
        return record
    with folder.metrics_path.open("rb") as lines:
        for line in lines:
            event = _event(line)
            if event is None:
                record.unread += bool(line.strip())
            elif event["event"] == "StepDone":
                record.steps.add(event)
            else:
                record.others.setdefault(event["event"], []).append(event)
    return record


def number(value: Any, otherwise: float = math.nan) -> float:
    """A number as it is, and anything else as `otherwise`.

    Example:
        >>> number(3), number(None), number("3", 0)
        (3.0, nan, 0)
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else otherwise


def text(value: Any) -> str:
    """Text as it is, and anything else as none."""
    return value if isinstance(value, str) else ""


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
