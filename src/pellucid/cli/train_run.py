"""Wires `pellucid train` together: sources, signals, the screen, the run.

In: `TrainFlags`.  Out: an exit code.  Used by: train.py.  Read next: train_screen.py.
"""

import os
import re
import signal
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from pellucid.cli.arguments import text_argument
from pellucid.cli.own_code import run_own_code
from pellucid.cli.said_once import said_once
from pellucid.cli.sources import text_of, tokenizer_named, told
from pellucid.cli.train_flags import TrainFlags, given
from pellucid.cli.train_report import accompanied, asked_trackers
from pellucid.cli.train_screen import TrainScreen
from pellucid.data import ChatSources
from pellucid.errors import UserError
from pellucid.parallel import Ranks, joined_ranks
from pellucid.train import Event, Finished, Observer, Planned, Request, Resumed, Start, Wish, join, resume, train
from pellucid.training_config import TrainingConfig

EXIT_CODES: dict[int, int] = {signal.SIGINT: 130, signal.SIGTERM: 143}


def carry_out(flags: TrainFlags, begun: float) -> int:
    """Make or go on with a run; 130 or 143 if a signal ended it early, with everything saved."""
    with said_once():
        run_own_code(flags)
    with joined_ranks() as ranks, TrainScreen() as screen, stop_signals() as stop, warnings.catch_warnings():
        # An interruption while torch traces a step: it has been understood, and torch need not tell where.
        warnings.filterwarnings("ignore", message="Error detected in")
        if not ranks.is_first:
            return _take_part(ranks, stop)

        observers: list[Observer] = [screen.show]
        trackers = asked_trackers(flags.track)

        def observe(event: Event) -> None:
            stop.armed = stop.armed or isinstance(event, Planned | Resumed)  # from here on there is something to save
            for observer in observers:
                observer(event)

        def watch() -> Wish:
            if stop.wished == Wish.STOP:
                screen.stopping()
            return stop.wished

        if flags.resume is not None:
            more = _more(flags)
            with accompanied(Path(flags.resume), trackers, screen.say, observers):
                finished = resume(Path(flags.resume), observe, begun=begun, watch=watch, ranks=ranks, **more)
        else:
            request = request_of(flags)
            with accompanied(request.out, trackers, screen.say, observers):
                finished = train(request, observe, begun=begun, watch=watch, ranks=ranks)
    return exit_code(finished, stop.number)


def exit_code(finished: Finished, stopped_by: int | None) -> int:
    """0 if the run has reached its last step, whatever signal came at the very end."""
    return 0 if finished.completed or stopped_by is None else EXIT_CODES[stopped_by]


def _take_part(ranks: Ranks, stop: "StopSignal") -> int:
    """A process that is not the first: it says nothing, and ends as the first does."""

    def arm(event: Event) -> None:
        stop.armed = True

    state = join(arm, ranks=ranks, watch=lambda: stop.wished)
    return 0 if state.step >= state.steps or stop.number is None else EXIT_CODES[stop.number]


def _more(flags: TrainFlags) -> dict[str, Any]:
    """How far a run is to go on: as planned, or to another step, or for some minutes."""
    more = {name: getattr(flags.training, name) for name in ("steps", "minutes")}
    alone = TrainFlags(
        resume=flags.resume,
        track=flags.track,
        own_code=flags.own_code,
        training=replace(TrainFlags().training, **more),
    )
    if flags != alone or all(more.values()):
        raise UserError(
            "--resume RUN alone, or with --steps or --minutes",
            came="sources or other flags beside it",
            remedy="the run goes on with its own text and settings; for others, begin a new one",
        )
    TrainingConfig(**more)  # refuses what is out of range
    return more


def request_of(flags: TrainFlags) -> Request:
    """The run that flags ask for."""
    training = given(flags.training)
    if "prompt" in training:
        training["prompt"] = text_argument(training["prompt"])
    config = TrainingConfig(**training)
    tokenizer = tokenizer_named(flags.tokenizer)
    sources, start = text_of(flags, flags.weights), _start(flags)
    if start is not None and isinstance(sources, ChatSources):
        start = start.for_chats()
    return Request(
        sources=sources,
        name=told(flags.sources),
        out=Path(flags.out) if flags.out is not None else free_folder(Path("runs"), _name(flags.sources)),
        training=config,
        preset=flags.preset,
        tokenizer=tokenizer,
        vocab_size=flags.vocab_size,
        model=given(flags.model),
        optimizer=given(flags.optimizer),
        schedule=given(flags.schedule),
        start=start,
    )


def _start(flags: TrainFlags) -> Start | None:
    """The model to go on from, if one is named."""
    if flags.from_ is not None:
        return Start.open(Path(flags.from_), [text_argument(name) for name in flags.add_token])
    if flags.add_token:
        raise UserError(
            "a model that gets the token", came="none", remedy="name it with --from, or leave --add-token out"
        )
    return None


def _name(sources: tuple[str, ...]) -> str:
    """A folder's name after the first source."""
    stem = Path(sources[0]).absolute().stem if sources else "python-docs"
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "text"


def free_folder(parent: Path, name: str) -> Path:
    """parent/name-01, or the first number that is free; torchrun's second attempt at a run finds the first one's."""
    number = 1
    while os.path.lexists(path := parent / f"{name}-{number:02d}"):
        number += 1
    again = number > 1 and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    return parent / f"{name}-{number - 1:02d}" if again else path


class StopSignal:
    """What signals have asked of the run; until it is armed, a signal ends the process as ever."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The last signal."""
        self.wished = Wish.GO_ON
        self.armed = False

    def hear(self, number: int) -> bool:
        """Take a signal as a wish: the first Ctrl-C cools the run down, the next, or SIGTERM, stops it.

        Returns:
            False if it is one too many: then it ends the process.
        """
        if not self.armed or self.wished == Wish.STOP:
            return False
        cool = number == signal.SIGINT and self.wished == Wish.GO_ON
        self.number, self.wished = number, Wish.COOL_DOWN if cool else Wish.STOP
        return True


@contextmanager
def stop_signals() -> Generator[StopSignal]:
    """Signals finish the step and save; after that has been asked for, another ends the process at once."""
    stop = StopSignal()

    def handle(number: int, frame: FrameType | None) -> None:
        handler = before[number]
        if not stop.hear(number) and callable(handler):
            handler(number, frame)

    before = {number: signal.signal(number, handle) for number in EXIT_CODES}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
