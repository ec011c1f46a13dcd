"""What the tests of this room share."""

import pytest
import torch

from pellucid.train import run, trial


@pytest.fixture(autouse=True)
def _nothing_takes_long(monkeypatch):
    """The closing sample and the timed trial are cut short; they are no part of what is tested."""
    monkeypatch.setattr(run, "CLOSING_TOKENS", 20)
    monkeypatch.setattr(trial, "TIMED_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
