"""Metrics for other people's dashboards: TensorBoard, Weights & Biases, trackio; each an observer of the run.

They are asked for by name and never needed. Nothing waits for a network: TensorBoard and trackio write to this machine,
and so does Weights & Biases unless its own settings say that it is logged in. One that fails is told once, in a
sentence, and left out from then on; the run does not notice.

In: events.  Out: numbers and texts in their files.  Used by: the command line.  Read next: ../cli/train_report.py.
"""

import contextlib
import importlib
import importlib.util
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from pellucid.checkpoint import RunFolder
from pellucid.errors import UserError
from pellucid.train import (
    Evaluated,
    Event,
    Finished,
    ModuleHealth,
    Noticed,
    Planned,
    Resumed,
    Sampled,
    StepDone,
    YardsticksMeasured,
)

PROJECT = "pellucid"
MOST_SAID = 200  # characters of what another library complains of


@runtime_checkable
class Tracker(Protocol):
    """What every dashboard can do; `step` is an optimizer step."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Take numbers."""

    def text(self, step: int, name: str, words: str) -> None:
        """Take a text."""

    def close(self) -> str:
        """Write what is left; says where it all is."""


class TensorBoard:
    """Event files in RUN/tensorboard, which TensorBoard reads.

    Args:
        folder: Of the run.
        config: What was decided.
        first: The first step that will come: what an earlier try wrote from there on is forgotten.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], first: int) -> None:
        library = importlib.import_module("torch.utils.tensorboard")
        self.path = folder / "tensorboard"
        self.writer = library.SummaryWriter(str(self.path), purge_step=first)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Take numbers."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def text(self, step: int, name: str, words: str) -> None:
        """Take a text. The page of TensorBoard reads Markdown, in which four spaces before each line mean: as it is."""
        self.writer.add_text(name, "\n".join(f"    {line}" for line in words.split("\n")), step)

    def close(self) -> str:
        """Write what is left."""
        self.writer.close()
        return f"tensorboard --logdir {self.path}"


class WeightsAndBiases:
    """A run of Weights & Biases; without a login it is kept in RUN/wandb, to be sent later. Arguments: as above."""

    def __init__(self, folder: Path, config: Mapping[str, Any], first: int) -> None:
        self.library = importlib.import_module("wandb")
        self.folder, known = folder, folder / "wandb" / "run-id.txt"
        known.parent.mkdir(exist_ok=True)
        again = {"id": known.read_text(encoding="ascii").strip(), "resume": "allow"} if known.exists() else {}
        self.mode = os.environ.get("WANDB_MODE") or ("online" if self._has_login() else "offline")
        self.run = self.library.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=folder.absolute().name,
            dir=str(folder),
            config=dict(config),
            mode=self.mode,
            settings=self.library.Settings(silent=True, console="off"),
            **again,
        )
        known.write_text(str(self.run.id), encoding="ascii")

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Take numbers."""
        self.run.log(dict(values), step=step)

    def text(self, step: int, name: str, words: str) -> None:
        """Take a text, as a table of one row."""
        self.run.log({name: self.library.Table(columns=["step", "text"], data=[[step, words]])}, step=step)

    def close(self) -> str:
        """Write what is left."""
        self.run.finish()
        return f"wandb sync {self.folder / 'wandb'}/offline-run-*" if self.mode == "offline" else "sent to wandb"

    def _has_login(self) -> bool:
        """Whether a key is there; asking for one would stop the run."""
        stored = getattr(getattr(self.library, "api", None), "api_key", None)
        return bool(os.environ.get("WANDB_API_KEY") or stored)


class Trackio:
    """A run of trackio, in its own folder on this machine. Arguments: as above."""

    def __init__(self, folder: Path, config: Mapping[str, Any], first: int) -> None:
        self.library = importlib.import_module("trackio")
        quiet = {"embed": False, "auto_log_cpu": False, "auto_log_gpu": False}
        name = folder.absolute().name
        self.run = self.library.init(project=PROJECT, name=name, config=dict(config), resume="allow", **quiet)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Take numbers."""
        self.run.log(dict(values), step=step)

    def text(self, step: int, name: str, words: str) -> None:
        """Take a text."""
        self.run.log({name: words}, step=step)

    def close(self) -> str:
        """Write what is left."""
        self.library.finish()
        return f"trackio show --project {PROJECT}"


TRACKERS: dict[str, Callable[[Path, Mapping[str, Any], int], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "trackio": Trackio,
}


def tracker_names(asked: str) -> tuple[str, ...]:
    """The trackers in a list with commas.

    Raises:
        UserError: for a name that is none, or a library that is not installed.

    Example:
        >>> tracker_names("")
        ()
    """
    names = tuple(dict.fromkeys(name for name in (part.strip().lower() for part in asked.split(",")) if name))
    for name in names:
        if name not in TRACKERS:
            raise UserError(
                f"trackers among {', '.join(TRACKERS)}", came=f"'{name}'", remedy="choose one, or several with commas"
            )
        if importlib.util.find_spec(name) is None:
            raise UserError(
                f"{name} to be installed for --track {name}",
                came="none in this Python",
                remedy=f"pip install {name}, or leave it out: metrics.jsonl and report.html hold the same figures",
            )
    return names


class Trackers:
    """An observer that passes a run on to trackers; use it as a context manager.

    Args:
        names: From `tracker_names`.
        folder: Of the run; it need not be there yet.
        say: Tells a sentence to whoever watches.
    """

    def __init__(self, names: Sequence[str], folder: Path, say: Callable[[str], None]) -> None:
        self.names, self.folder, self.say = tuple(names), folder, say
        self.open: dict[str, Tracker] = {}
        self.waiting: list[Event] = []
        """What came before the run had its plan."""

    def __enter__(self) -> "Trackers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name, tracker in list(self.open.items()):
            where: list[str] = []
            self._safely(name, lambda tracker=tracker, where=where: where.append(tracker.close()))
            if where:
                self.say(f"Tracked by {name}: {where[0]}")
        self.open.clear()

    def __call__(self, event: Event) -> None:
        """Hear an event."""
        if not self.names:
            return
        self.waiting.append(event)
        if isinstance(event, Planned | Resumed):
            self._begin(event)
        if self.open or isinstance(event, Planned | Resumed):
            for earlier in self.waiting:
                self._pass_on(earlier)
            self.waiting.clear()

    def _begin(self, event: Planned | Resumed) -> None:
        first = event.step + 1 if isinstance(event, Resumed) else 0
        for name in self.names:

            def begin(name: str = name) -> None:
                self.open[name] = TRACKERS[name](self.folder, config_of(self.folder, event), first)

            self._safely(name, begin)

    def _pass_on(self, event: Event) -> None:
        step = int(getattr(event, "step", 0))
        values = {name: value for name, value in scalars_of(event) if value is not None and math.isfinite(value)}
        texts = dict(texts_of(event))
        for name, tracker in list(self.open.items()):

            def pass_on(tracker: Tracker = tracker) -> None:
                if values:
                    tracker.scalars(step, values)
                for title, words in texts.items():
                    tracker.text(step, title, words)

            self._safely(name, pass_on)

    def _safely(self, name: str, action: Callable[[], None]) -> None:
        """Do it quietly; a tracker that fails is told and left out."""
        try:
            # Some greet with several lines and take leave with more.
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                action()
        except Exception as error:  # another library's, of any kind
            self.open.pop(name, None)
            what = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_SAID]
            self.say(f"{name} failed and is left out from here on ({what}); metrics.jsonl has everything.")


def config_of(folder: Path, event: Planned | Resumed) -> dict[str, Any]:
    """What was decided, for a dashboard's table of settings."""
    facts = RunFolder.open(folder).facts
    plan = event.as_json() if isinstance(event, Planned) else facts.get("plan", {})
    return {"seed": facts.get("seed"), "data": _without_alphabet(facts.get("data", {})), "plan": plan} | facts["config"]


def scalars_of(event: Event) -> Iterator[tuple[str, float | None]]:
    """The numbers of an event, by the names they have on every dashboard."""
    match event:
        case StepDone():
            yield "train/bits_per_character", event.bits_per_character
            yield "train/running_mean", event.train
            yield "train/gradient_norm", event.gradient_norm
            yield "train/tokens_per_second", event.tokens_per_second
            yield "train/epoch", event.epoch
            yield from ((f"learning_rate/{name}", rate) for name, rate in event.learning_rates.items())
        case Evaluated():
            yield "held_out/bits_per_character", event.held_out
            yield "held_out/standard_error", event.standard_error
            yield "held_out/where_it_did_not_choose", event.held_out_odd
        case YardsticksMeasured():
            for name in ("chance", "letters", "best_ngram", "xz"):
                yield f"yardsticks/{name}", getattr(event, name)
        case ModuleHealth():
            for address, figures in event.modules.items():
                yield from ((f"health/{quantity}/{address}", value) for quantity, value in figures.items())


def texts_of(event: Event) -> Iterator[tuple[str, str]]:
    """The texts of an event."""
    match event:
        case Sampled():
            yield "sample", event.prompt + event.text
        case Noticed():
            yield "noticed", event.sentence
        case Finished():
            yield "closing_sample", event.sample


def _without_alphabet(data: Mapping[str, Any]) -> dict[str, Any]:
    """What may leave the machine: not the text's characters."""
    return {name: value for name, value in data.items() if name != "alphabet"}
