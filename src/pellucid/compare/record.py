"""A run as a comparison sees it: what was decided, and how well it predicted the held-out text, when.

Seconds are those of training, evaluations and samples between steps included, and the wait before a run went on again
left out; they depend on the machine and on what else it did.

In: run.json and metrics.jsonl.  Out: `RunRecord`.  Used by: groups, comparison.  Read next: groups.py.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.checkpoint import RunFolder
from pellucid.compare.work import flops_per_token
from pellucid.errors import RunFolderError

TOLD_BY_PLAN = {
    *("minutes", "steps", "batch_size", "micro_batch_size", "tokens_per_step", "precision", "attention", "compile"),
    *("device", "threads", "seed", "prompt", "keep", "shard", "activation_checkpointing"),
}
"""Fields of the training's configuration that the plan tells as they came to be, and those that change no figure."""
MANY_SKIPPED = 10  # steps in a row without a finite loss or gradient; training stops there
Event = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The held-out text, scored once during a run."""

    step: int
    tokens: int
    flops: float
    seconds: float
    held_out: float
    """Bits per character."""
    standard_error: float | None
    passage_bits: tuple[float, ...]
    passage_characters: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run."""

    path: Path
    facts: Mapping[str, Any]
    """run.json."""
    readings: tuple[Reading, ...]
    best: Reading | None
    """The one whose weights model.safetensors holds."""
    step: int
    seconds: float
    completed: bool
    diverged: str
    """When its numbers went bad, in words; empty if they did not."""

    @property
    def name(self) -> str:
        """Its folder's."""
        return self.path.name

    @property
    def seed(self) -> int:
        """The seed of its weights and batches."""
        return self.facts["seed"]

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was decided when the text was known."""
        return self.facts["plan"]

    @property
    def tokens(self) -> int:
        """Tokens it has learned from, those read again included."""
        return self.step * self.plan["tokens_per_step"]

    @property
    def flops(self) -> float:
        """Operations it has taken."""
        return self.tokens * flops_per_token(self.plan["model"], self.plan["parameters"])

    def settings(self) -> dict[str, Any]:
        """Everything that was decided and that can make numbers differ, the seed aside, as one flat mapping.

        Values as they came to be: a decay that follows from the steps is here, and not that nobody asked for one.
        """
        config, plan, facts = self.facts["config"], self.plan, self.facts
        rest = {name: value for name, value in config["training"].items() if name not in TOLD_BY_PLAN}
        return {
            "text": facts["data"]["name"],
            "text.fingerprint": facts["data"]["fingerprint"],
            "text.held_out": _flat(facts["data"].get("held_out", {})),
            "from": facts["from"]["path"] if "from" in facts else "nothing",
            "tokenizer": f"{facts['tokenizer']['vocab_size']:,} {facts['tokenizer']['kind']}",
            "tokenizer.fingerprint": facts["tokenizer"]["fingerprint"],
            **{f"model.{name}": _flat(value) for name, value in plan["model"].items()},
            **{f"optimizer.{name}": _flat(value) for name, value in plan["optimizer"].items()},
            **{f"schedule.{name}": _flat(value) for name, value in config["schedule"].items()},
            "initialization": config["initialization"],
            "steps": plan["steps"],
            "batch_size": plan["batch_size"],
            **{f"training.{name}": _flat(value) for name, value in rest.items()},
            "computed": plan["variant"],
            "device": plan["device"],
        }


def read_run(path: Path) -> RunRecord:
    """A run folder, finished or not.

    Raises:
        RunFolderError: if it is none, or its run has not come as far as its first step.
    """
    folder = RunFolder.open(path)
    facts, events = folder.facts, folder.metrics()
    if not {"plan", "data", "config", "tokenizer"} <= facts.keys():
        if "imported" in facts:
            raise RunFolderError(
                f"a run in '{path}' that was trained here",
                came="a model that was imported, of whose training nothing is known",
                remedy="compare what models predict: pellucid evaluate gives each one's figure on a text",
            )
        raise RunFolderError(
            f"a run in '{path}' that has begun to train",
            came="one that was ended before its plan was made",
            remedy="let it train, or leave it out",
        )
    try:
        record = _record(Path(path), facts, events)
        record.settings(), record.flops  # what is asked for later, asked for here
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"run.json and metrics.jsonl in '{path}' as training wrote them",
            came=f"something else ({type(error).__name__}: {error})",
            remedy="leave this run out",
        ) from error
    return record


def _record(path: Path, facts: Mapping[str, Any], events: Sequence[Event]) -> RunRecord:
    readings, best, clock = [], None, _Clock(facts["plan"]["tokens_per_step"])
    for event in events:
        clock.hear(event)
        held_out = event.get("held_out") if event.get("event") == "Evaluated" else None
        if held_out is not None and math.isfinite(held_out):
            readings.append(_reading(event, facts["plan"], clock.seconds))
            best = readings[-1] if event["is_best"] else best
    last = events[-1] if events else {}
    return RunRecord(
        path=path,
        facts=facts,
        readings=tuple(readings),
        best=best,
        step=clock.step,
        seconds=clock.seconds,
        completed=last.get("event") == "Finished" and bool(last.get("completed")),
        diverged=_diverged(events, readings, (facts.get("yardsticks") or {}).get("chance")),
    )


class _Clock:
    """Seconds of training so far, out of the mean rate that events tell since the run was taken up."""

    def __init__(self, tokens_per_step: int) -> None:
        self.tokens_per_step = tokens_per_step
        self.step, self.seconds = 0, 0.0
        self.taken_up, self.before = 0, 0.0

    def hear(self, event: Event) -> None:
        match event.get("event"):
            case "Resumed":
                self.taken_up, self.before = event["step"], self.seconds
                self.step = event["step"]
            case "StepDone" | "Evaluated":
                self.step = event["step"]
                if event.get("tokens_per_second"):
                    done = (self.step - self.taken_up) * self.tokens_per_step
                    self.seconds = self.before + done / event["tokens_per_second"]


def _reading(event: Event, plan: Mapping[str, Any], seconds: float) -> Reading:
    tokens = event["step"] * plan["tokens_per_step"]
    return Reading(
        step=event["step"],
        tokens=tokens,
        flops=tokens * flops_per_token(plan["model"], plan["parameters"]),
        seconds=seconds,
        held_out=event["held_out"],
        standard_error=event["standard_error"],
        passage_bits=tuple(event.get("passage_bits") or ()),
        passage_characters=tuple(event.get("passage_characters") or ()),
    )


def _diverged(events: Iterable[Event], readings: list[Reading], chance: float | None) -> str:
    """When the numbers of a run went bad, if they did: skipped to the end, or worse than guessing at the end."""
    skipped, step = 0, 0
    for event in events:
        if event.get("event") == "StepDone":
            skipped, step = (skipped + 1 if event.get("skipped") else 0), event["step"]
    if skipped >= MANY_SKIPPED:
        return f"diverged at step {step - skipped + 1:,}: no finite loss or gradient from there on"
    if chance is not None and len(readings) > 1 and readings[-1].held_out >= chance:
        last = readings[-1]
        return f"diverged: {last.held_out:.2f} bits per character at step {last.step:,}, chance is {chance:.2f}"
    return ""


def _flat(value: Any) -> Any:
    """A value that can be compared and shown on a line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else value
