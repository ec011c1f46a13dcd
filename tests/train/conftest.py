"""What the tests of this room share."""

import pytest
import torch

from tests.train.small_run import cut_short


@pytest.fixture(autouse=True)
def _nothing_takes_long(monkeypatch):
    cut_short(monkeypatch)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
