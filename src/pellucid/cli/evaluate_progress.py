"""How far a long reading is: a line that moves on a terminal, elsewhere a line now and then.

In: how much is done.  Out: lines on standard error.  Used by: evaluate_run.py.  Read next: evaluate_lines.py.
"""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PLAIN_SECONDS = 30.0  # without a terminal never longer than this without a line


class ReadingProgress:
    """Tells how far it is; use it as a context manager.

    Args:
        total: How much there is to do.
        what: Its unit, as a word: "characters".
        quiet: Whether to say nothing.
    """

    def __init__(self, total: int, what: str, *, quiet: bool = False) -> None:
        self.total, self.what, self.quiet = max(total, 1), what, quiet
        console = Console(stderr=True, highlight=False)
        self.is_alive = console.is_terminal and not console.is_dumb_terminal and not quiet
        columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
        self.live = Progress(*columns, console=console, transient=True, disable=not self.is_alive)
        self.task = self.live.add_task("", total=self.total, rate="")
        self.begun = self.spoken = time.monotonic()

    def __enter__(self) -> "ReadingProgress":
        self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.live.stop()

    def __call__(self, done: int) -> None:
        """So much is done."""
        now = time.monotonic()
        rate = f"{done / max(now - self.begun, 1e-9):,.0f} {self.what}/s"
        self.live.update(self.task, completed=done, rate=rate)
        if not self.is_alive and not self.quiet and now - self.spoken >= PLAIN_SECONDS:
            self.spoken = now
            print(f"{done / self.total:.0%} of {self.total:,} {self.what}, {rate}.", file=sys.stderr, flush=True)
