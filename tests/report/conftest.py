"""A small run, trained once, and copies of it to damage."""

import shutil
from pathlib import Path

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.report.record import Record, read_record
from pellucid.train import Event
from tests.report.invented_run import TEXT
from tests.train.small_run import cut_short, small_sources, train_small


@pytest.fixture(scope="session")
def run_and_events(tmp_path_factory) -> tuple[Path, list[Event]]:
    """A run of 12 steps and 3 evaluations, completed."""
    path = tmp_path_factory.mktemp("runs") / "words-01"
    with pytest.MonkeyPatch.context() as patch:
        cut_short(patch)
        _, events = train_small(path, steps=12, evaluations=3, sources=small_sources(4000))
    return path, list(events)


@pytest.fixture
def trained(run_and_events) -> Path:
    """Its folder, not to be changed."""
    return run_and_events[0]


@pytest.fixture
def heard(run_and_events) -> list[Event]:
    """Its events."""
    return run_and_events[1]


@pytest.fixture
def run(trained, tmp_path) -> RunFolder:
    """A copy of it that a test may change."""
    shutil.copytree(trained, tmp_path / "words-01")
    return RunFolder.open(tmp_path / "words-01")


@pytest.fixture
def record(run) -> Record:
    """What it tells."""
    return read_record(run)


@pytest.fixture
def hostile() -> str:
    """Text that would like to be markup, in three scripts."""
    return TEXT
