import pytest
import torch
from torch.utils import deterministic

from pellucid.train.machine import reproducible


def switches():
    return (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        deterministic.fill_uninitialized_memory,
    )


def test_inside_numbers_are_reproducible_on_the_threads_asked_for():
    with reproducible(1):
        assert switches() == (1, True, False)


def test_without_a_number_the_threads_stay():
    before = torch.get_num_threads()
    with reproducible(None):
        assert torch.get_num_threads() == before


def test_afterwards_torch_is_as_it_was_even_if_the_block_fails():
    before = switches()
    with pytest.raises(KeyError), reproducible(before[0] + 1):
        raise KeyError
    assert switches() == before
