"""What the tests of the whole model share."""

import pytest
import torch

from tests.train.small_run import cut_short


@pytest.fixture(autouse=True)
def _the_same_numbers_whatever_ran_before() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def nothing_takes_long():
    """What a small run need not do is left out, for all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        cut_short(patch)
        yield
