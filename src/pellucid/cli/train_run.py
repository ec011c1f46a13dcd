"""Wires `pellucid train` together: sources, signals, the screen, the run.

In: `TrainFlags`.  Out: an exit code.  Used by: train.py.  Read next: train_screen.py.
"""

import os
import re
import signal
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pellucid.cli.arguments import text_argument
from pellucid.cli.train_flags import TrainFlags, given
from pellucid.cli.train_screen import TrainScreen
from pellucid.data import Sources, builtin_corpus, open_sources
from pellucid.errors import UserError
from pellucid.train import Event, Finished, Planned, Request, Resumed, Wish, resume, train
from pellucid.training_config import TrainingConfig

TOKENIZERS = {"char": "characters", "characters": "characters", "bpe": "bpe"}
NAMED = 4  # sources; a pattern of the shell may give thousands
EXIT_CODES: dict[int, int] = {signal.SIGINT: 130, signal.SIGTERM: 143}


def carry_out(flags: TrainFlags, begun: float) -> int:
    """Make or go on with a run; 130 or 143 if a signal ended it early, with everything saved."""
    with TrainScreen() as screen, stop_signals() as stop, warnings.catch_warnings():
        # An interruption while torch traces a step: it has been understood, and torch need not tell where.
        warnings.filterwarnings("ignore", message="Error detected in")

        def observe(event: Event) -> None:
            stop.armed = stop.armed or isinstance(event, Planned | Resumed)  # from here on there is something to save
            screen.show(event)

        def watch() -> Wish:
            if stop.wished == Wish.STOP:
                screen.stopping()
            return stop.wished

        if flags.resume is not None:
            _require_alone(flags)
            finished = resume(Path(flags.resume), observe, begun=begun, watch=watch)
        else:
            finished = train(request_of(flags), observe, begun=begun, watch=watch)
    return exit_code(finished, stop.number)


def exit_code(finished: Finished, stopped_by: int | None) -> int:
    """0 if the run has reached its last step, whatever signal came at the very end."""
    return 0 if finished.completed or stopped_by is None else EXIT_CODES[stopped_by]


def _require_alone(flags: TrainFlags) -> None:
    if flags != TrainFlags(resume=flags.resume):
        raise UserError(
            "--resume RUN alone",
            came="sources or other flags beside it",
            remedy="the run goes on with its own text and settings; for others, begin a new one",
        )


def request_of(flags: TrainFlags) -> Request:
    """The run that flags ask for."""
    training = given(flags.training)
    if "prompt" in training:
        training["prompt"] = text_argument(training["prompt"])
    config = TrainingConfig(**training)
    tokenizer = _tokenizer(flags.tokenizer)
    return Request(
        sources=_sources(flags),
        name=_told(flags.sources),
        out=Path(flags.out) if flags.out is not None else free_folder(Path("runs"), _name(flags.sources)),
        training=config,
        preset=flags.preset,
        tokenizer=tokenizer,
        vocab_size=flags.vocab_size,
        model=given(flags.model),
        optimizer=given(flags.optimizer),
        schedule=given(flags.schedule),
    )


def _sources(flags: TrainFlags) -> Sources:
    held_out = {} if flags.held_out is None else {"held_out_percent": flags.held_out}
    if not flags.sources:
        return builtin_corpus(**held_out)
    return open_sources(
        flags.sources,
        encoding=flags.encoding,
        text_column=flags.text_column,
        drop_boilerplate=flags.drop_boilerplate,
        **held_out,
    )


def _tokenizer(asked: str | None) -> str | None:
    """The tokenizer as a request names it."""
    if asked is None or asked in TOKENIZERS:
        return TOKENIZERS.get(asked or "")
    if not os.path.exists(asked):
        raise UserError(
            "--tokenizer char, bpe, or the path of a tokenizer.json",
            came=f"'{asked}', where there is nothing",
            remedy="choose one of the two, or check the path",
        )
    return asked


def _told(sources: tuple[str, ...]) -> str:
    """What the text is called on the screen."""
    more = f" and {len(sources) - NAMED:,} more" if len(sources) > NAMED else ""
    return ", ".join(sources[:NAMED]) + more or "Python's documentation"


def _name(sources: tuple[str, ...]) -> str:
    """A folder's name after the first source."""
    stem = Path(sources[0]).absolute().stem if sources else "python-docs"
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "text"


def free_folder(parent: Path, name: str) -> Path:
    """parent/name-01, or the first number that is free."""
    number = 1
    while os.path.lexists(path := parent / f"{name}-{number:02d}"):
        number += 1
    return path


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
