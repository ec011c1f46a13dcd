"""A recipe with variants or seeds: its runs, one after the other, and their comparison.

Repeated, the same command goes on where it was stopped: runs that are done are kept, the interrupted one goes on from
its checkpoint, bit for bit. A run whose numbers went bad is told, and the others go on.

In: a recipe, flags.  Out: run folders in one folder, compare.html, an exit code.  Used by: train.py.
Read next: compare.py.
"""

import hashlib
import json
import shlex
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pellucid import own_parts
from pellucid.checkpoint import RunFolder
from pellucid.cli.compare import printed, write_page
from pellucid.cli.train_flags import TrainFlags, from_settings
from pellucid.cli.train_recipe import flag_settings
from pellucid.cli.train_report import accompanied, asked_trackers
from pellucid.cli.train_run import EXIT_CODES, StopSignal, request_of, stop_signals
from pellucid.cli.train_screen import TrainScreen
from pellucid.compare import SeriesFile, StoppedRun, compare, read_series, write_series
from pellucid.errors import ConfigError, TrainingStopped, UserError
from pellucid.pages.quantities import counted, duration
from pellucid.run_config import RecipeFile, RunConfig, in_variant
from pellucid.train import (
    Event,
    Observer,
    Planned,
    Request,
    Resumed,
    StepDone,
    TextRead,
    TextTokenized,
    Wish,
    YardsticksMeasured,
    train,
)
from pellucid.train.facts import as_text, command

PAGE = "compare.html"


@dataclass
class Series:
    """The runs of a recipe in their folder."""

    recipe: RecipeFile
    out: Path
    runs: list[tuple[RunConfig, Request]]
    screen: TrainScreen
    stop: StopSignal
    trackers: tuple[str, ...] = ()
    text_told: bool = False
    seconds: list[float] = field(default_factory=list)
    """What each run took that was made now."""

    def __call__(self) -> bool:
        """Make what is missing; says whether all is there."""
        self.remember({})
        for number, (run, request) in enumerate(self.runs, 1):
            name = f"Run {number} of {len(self.runs)}, {run.variant}, seed {run.seed}"
            if ended := self.stopped.get(run.name):
                self.screen.say(f"{name}: not tried again. {ended.sentence}")
            elif said := self.done(request):
                self.screen.say(f"{name}: {said}, kept.")
            elif not self.make(name, run, request, len(self.runs) - number):
                return False
        return True

    def done(self, request: Request) -> str:
        """What is to be said of a run that is over; nothing of one that is not."""
        if not (request.out / "run.json").exists():
            return ""
        folder = RunFolder.open(request.out)
        last = next(reversed(folder.metrics()), {})
        if last.get("event") != "Finished" or not last["completed"]:
            return ""
        decided = request.first_facts(request.recipe())
        folder.require_same(decided | {"data": decided["data"] | {"name": folder.facts["data"]["name"]}})
        return _result(last["held_out"], last["standard_error"], last["best_step"])

    def make(self, name: str, run: RunConfig, request: Request, left: int) -> bool:
        """One run, to its end or to where somebody stopped it."""
        begun = time.monotonic()
        self.stop.armed = False

        observers: list[Observer] = [partial(self.hear, name)]

        def observe(event: Event) -> None:
            self.stop.armed = self.stop.armed or isinstance(event, Planned | Resumed)
            for observer in observers:
                observer(event)

        def watch() -> Wish:
            return Wish.STOP if self.stop.wished else Wish.GO_ON

        try:
            with accompanied(request.out, self.trackers, self.aside, observers):
                finished = train(request, observe, begun=begun, watch=watch)
        except (TrainingStopped, ConfigError) as error:  # numbers that went bad, or were bad in the trial already
            self.remember({run.name: StoppedRun(fingerprint(request), str(error))})
            self.screen.say(f"{name}: no result. {error} The other runs go on.")
            return True
        finally:
            self.screen.end_live()
            torch.compiler.reset()  # or the programs of earlier models crowd out those of later ones
        if finished.completed:
            self.seconds.append(time.monotonic() - begun)
            ahead = sum(self.seconds) / len(self.seconds) * left
            told = f"; about {duration(ahead)} for {counted(left, 'more run')}" if left else ""
            said = _result(finished.held_out, finished.standard_error, finished.best_step)
            self.screen.say(f"  {said}, after {duration(self.seconds[-1])}{told}.")
        return finished.completed

    def hear(self, name: str, event: Event) -> None:
        """A few lines for each run, and what is said of the text once."""
        match event:
            case TextRead() | TextTokenized() | YardsticksMeasured() if not self.text_told:
                self.screen.show(event)
                self.text_told = isinstance(event, YardsticksMeasured)
            case Planned():
                self.text_told = True
                self.screen.say(
                    f"{name}: {event.parameters:,} weights, {counted(event.steps, 'step')} of"
                    f" {event.tokens_per_step:,} tokens, about {duration(max(1.0, event.steps * event.step_seconds))};"
                    f" {event.variant}."
                )
            case Resumed():
                self.screen.say(f"{name}: goes on from step {event.step:,} of {event.steps:,}.")
            case StepDone() if self.screen.is_alive:
                self.screen.show(event)

    def aside(self, sentence: str) -> None:
        """What is said beside a run; that it has a page of its own need not be said of each."""
        if not sentence.startswith("Report: "):
            self.screen.say(f"  {sentence}")

    @property
    def stopped(self) -> dict[str, StoppedRun]:
        """Runs whose numbers went bad, by name; not those of the same name that were to do something else."""
        known = read_series(self.out)
        wanted = {run.name: fingerprint(request) for run, request in self.runs}
        kept = known.stopped if known else {}
        return {name: run for name, run in kept.items() if wanted.get(name) == run.fingerprint}

    def remember(self, more: dict[str, StoppedRun]) -> None:
        """Write down which runs there are, and which ended: the series repeated does not try those again."""
        write_series(self.out, SeriesFile(runs=[run.name for run, _ in self.runs], stopped=self.stopped | more))


def carry_out_series(recipe: RecipeFile, flags: TrainFlags) -> int:
    """Make all runs of a recipe, or those that are missing, and compare them; 130 or 143 after a signal."""
    out = Path(flags.out or Path("runs") / recipe.path.stem)
    with TrainScreen() as screen, stop_signals() as stop:
        series = Series(recipe, out, requests(recipe, flags, out), screen, stop, asked_trackers(flags.track))
        screen.say(_heading(series))
        complete = False
        try:
            complete = series()
        finally:
            if not complete:
                screen.say(f"Stopped; what is done is kept in {shlex.quote(as_text(out))}. Go on: {_again()}")
        if not complete:
            return EXIT_CODES[stop.number] if stop.number is not None else 1
        if len(series.runs) > 1:
            comparison = compare([out])
            for line in printed(comparison):
                screen.say(line)
            write_page(comparison, out / PAGE)
            screen.say(f"The same with curves: {shlex.quote(as_text(out / PAGE))}")
    return 0


def requests(recipe: RecipeFile, flags: TrainFlags, out: Path) -> list[tuple[RunConfig, Request]]:
    """Every run as a request, all checked before the first begins; the text is read once.

    Raises:
        UserError: naming the variant that cannot work.
    """
    made: list[tuple[RunConfig, Request]] = []
    for run in recipe.runs(flag_settings(flags)):
        try:
            request = request_of(from_settings(run.settings, out=str(out / run.name)))
            if made:
                request = replace(request, sources=made[0][1].sources)
            request = replace(request, model=own_parts.pinned(request.model))  # as the code is now, for all runs
            request.recipe()
        except UserError as error:
            raise in_variant(error, run, recipe.path) from error
        made.append((run, request))
    return made


def fingerprint(request: Request) -> str:
    """What makes a run what it is, as one word."""
    decided: dict[str, Any] = request.first_facts(request.recipe())
    text = json.dumps([decided["config"], decided["data"]["fingerprint"]], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _heading(series: Series) -> str:
    variants = list(dict.fromkeys(run.variant for run, _ in series.runs))
    seeds = len(series.runs) // len(variants)
    steps = series.runs[0][0].settings["training.steps"]
    return (
        f"Recipe: {series.recipe.path}, {counted(len(series.runs), 'run')} of {counted(steps, 'step')}, into"
        f" {series.out}: {', '.join(variants)}; {counted(seeds, 'seed')} each."
    )


def _result(held_out: float | None, error: float | None, best_step: int) -> str:
    if held_out is None:
        return "done; no text was held out to score it on"
    spread = "" if error is None else f" ± {error:.3f}"
    return f"held out {held_out:.3f}{spread} bits per character at step {best_step:,}"


def _again() -> str:
    return shlex.join(command())
