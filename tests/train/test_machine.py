import pytest
import torch
from torch.utils import deterministic

from pellucid.errors import ConfigError
from pellucid.train.machine import memory_in_a_sentence, peak_memory_bytes, reproducible


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


def test_memory_that_does_not_suffice_is_a_sentence_with_what_to_lower():
    with pytest.raises(ConfigError, match="lower micro_batch_size"), memory_in_a_sentence():
        torch.empty(10**15)
    with pytest.raises(ConfigError, match="lower micro_batch_size"), memory_in_a_sentence():
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_every_other_error_stays_what_it_is():
    with pytest.raises(RuntimeError, match="shapes"), memory_in_a_sentence():
        raise RuntimeError("shapes")


def test_the_most_memory_held_is_some_hundred_megabytes_and_never_less_than_before():
    before = peak_memory_bytes(torch.device("cpu"))
    held = torch.ones(40_000_000)
    after = peak_memory_bytes(torch.device("cpu"))
    assert 50e6 < before <= after
    assert after > held.numel() * 4
