"""Wires `pellucid train` together: sources, signals, the screen, the run.

In: `TrainFlags`.  Out: an exit code.  Used by: train.py.  Read next: train_screen.py.
"""

import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pellucid.cli.train_flags import TrainFlags, given
from pellucid.cli.train_screen import TrainScreen
from pellucid.data import Sources, builtin_corpus, open_sources
from pellucid.errors import UserError
from pellucid.train import Event, Planned, Request, resume, train

TOKENIZER_NAMES = {"char": "characters"}
EXIT_CODES: dict[int, int] = {signal.SIGINT: 130, signal.SIGTERM: 143}


def carry_out(flags: TrainFlags, begun: float) -> int:
    """Make or go on with a run; 130 or 143 if a signal ended it early, with everything saved."""
    with TrainScreen() as screen, stop_signals() as stop:

        def observe(event: Event) -> None:
            stop.armed = stop.armed or isinstance(event, Planned)  # from here on there is something to save
            screen.show(event)

        if flags.resume is not None:
            if flags.sources or flags.out:
                raise UserError(
                    "--resume RUN alone",
                    came="sources or --out beside it",
                    remedy="the run knows its own text and folder",
                )
            finished = resume(Path(flags.resume), observe, begun=begun, should_stop=stop.asked)
        else:
            sources = open_sources(flags.sources, encoding=flags.encoding) if flags.sources else builtin_corpus()
            request = _request(flags, sources)
            finished = train(request, observe, begun=begun, should_stop=stop.asked)
    return 0 if finished.completed or stop.number is None else EXIT_CODES[stop.number]


def _request(flags: TrainFlags, sources: Sources) -> Request:
    name = _name(flags.sources)
    return Request(
        sources=sources,
        name=", ".join(flags.sources) or "Python's documentation",
        out=Path(flags.out) if flags.out else free_folder(Path("runs"), name),
        training=flags.training,
        preset=flags.preset,
        tokenizer=TOKENIZER_NAMES.get(flags.tokenizer or "", flags.tokenizer),
        vocab_size=flags.vocab_size,
        model=given(flags.model),
        optimizer=given(flags.optimizer),
        schedule=given(flags.schedule),
    )


def _name(sources: tuple[str, ...]) -> str:
    """A folder's name after the first source."""
    stem = Path(sources[0]).absolute().stem if sources else "python-docs"
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "text"


def free_folder(parent: Path, name: str) -> Path:
    """parent/name-01, or the first number that is free."""
    number = 1
    while (path := parent / f"{name}-{number:02d}").exists():
        number += 1
    return path


class StopSignal:
    """Which signal has asked the run to stop; until it is armed, a signal ends the process as ever."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.armed = False

    def asked(self) -> bool:
        """True once a signal came."""
        return self.number is not None


@contextmanager
def stop_signals() -> Generator[StopSignal]:
    """Ctrl-C and SIGTERM finish the step and save; a second one ends at once."""
    stop = StopSignal()

    def handle(number: int, frame: FrameType | None) -> None:
        handler = before[number]
        if stop.armed and stop.number is None:
            stop.number = number
        elif callable(handler):
            handler(number, frame)

    before = {number: signal.signal(number, handle) for number in EXIT_CODES}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
