"""The page at the end of a run: written when everything else is saved, and never a reason to fail.

In: a run folder.  Out: report.html, and a line.  Used by: train_run.py.  Read next: ../report/.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from pellucid.checkpoint import RunFolder
from pellucid.cli.quoting import one_line
from pellucid.errors import TrainingStopped

MOST = 200  # cells of what went wrong: it is not what the person waited for


@contextmanager
def report_at_end(path: Path, say: Callable[[str], None]) -> Generator[None]:
    """While the block lasts a run goes on in `path`; then its page is written, also if its numbers went bad."""
    try:
        yield
    except TrainingStopped:
        say(written_report(path))
        raise
    say(written_report(path))


def written_report(path: Path) -> str:
    """Write the page of the run in `path`; says where it is, or why there is none."""
    try:
        from pellucid.report import write_report  # brings matplotlib, which the run need not wait for

        page = write_report(RunFolder.open(path))
        return f"Report: {page}, a page for a browser."
    except Exception as error:  # the run is good without it
        what = one_line(f"{type(error).__name__}: {error}", MOST)
        return f"No report was written ({what}); the run itself is whole."
