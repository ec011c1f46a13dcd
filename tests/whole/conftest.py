"""What the tests of the whole model share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _the_same_numbers_whatever_ran_before() -> None:
    torch.manual_seed(0)
