import time

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.train import Finished, StepDone, closing, resume, train
from tests.train.small_run import Heard, small_request, train_small


def test_a_run_that_was_killed_during_its_closing_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(closing, "longest_copied_of_each", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train_small(tmp_path / "run")
    monkeypatch.undo()
    heard = Heard()
    assert resume(tmp_path / "run", heard).completed
    assert not heard.of(StepDone)
    assert RunFolder.open(tmp_path / "run").metrics()[-1]["event"] == "Finished"


def test_what_is_said_at_the_end_counts_from_enter(tmp_path):
    finished = train(small_request(tmp_path / "run", steps=1), Heard(), begun=time.monotonic() - 1000)
    assert isinstance(finished, Finished)
    assert finished.seconds > 1000
