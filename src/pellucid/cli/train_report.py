"""What goes along with a run: trackers, if asked for, and the page at its end; never a reason to fail.

In: a run folder, names of trackers.  Out: report.html, and lines.  Used by: train_run.py.  Read next: ../report/.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pellucid.checkpoint import RunFolder
from pellucid.cli.quoting import one_line
from pellucid.errors import TrainingStopped
from pellucid.train import Observer

MOST = 200  # cells of what went wrong: it is not what the person waited for


@contextmanager
def accompanied(
    path: Path, trackers: Sequence[str], say: Callable[[str], None], observers: list[Observer]
) -> Generator[None]:
    """While the block lasts a run goes on in `path`; then its page is written, also if its numbers went bad.

    Args:
        path: The run folder; it need not be there yet.
        trackers: From `asked_trackers`.
        say: Tells a sentence to whoever watches.
        observers: Of the run: trackers are added to them.
    """
    with _tracking(path, trackers, say) as tracking:
        observers += tracking
        try:
            yield
        except TrainingStopped:
            say(written_report(path))
            raise
    say(written_report(path))


def asked_trackers(asked: str | None) -> tuple[str, ...]:
    """The names after --track, each of which can be used.

    Raises:
        UserError: if one cannot.
    """
    if asked is None:
        return ()
    from pellucid.report.trackers import tracker_names

    return tracker_names(asked)


@contextmanager
def _tracking(path: Path, trackers: Sequence[str], say: Callable[[str], None]) -> Generator[list[Observer]]:
    if not trackers:
        yield []
        return
    from pellucid.report.trackers import Trackers

    with Trackers(trackers, path, say) as tracking:
        yield [tracking]


def written_report(path: Path) -> str:
    """Write the page of the run in `path`; says where it is, or why there is none."""
    try:
        from pellucid.report import write_report  # brings matplotlib, which the run need not wait for

        page = write_report(RunFolder.open(path))
        return f"Report: {page}, a page for a browser."
    except Exception as error:  # the run is good without it
        what = one_line(f"{type(error).__name__}: {error}", MOST)
        return f"No report was written ({what}); the run itself is whole."
