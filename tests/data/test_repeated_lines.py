"""Repeated hashes are counted exactly, however few fit in memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.data import repeated_lines
from pellucid.data.repeated_lines import HashFile


@pytest.mark.parametrize("together", [4_000_000, 500, 7])
def test_it_does_not_depend_on_the_memory(tmp_path, monkeypatch, together):
    monkeypatch.setattr(repeated_lines, "HASHES_TOGETHER", together)
    monkeypatch.setattr(repeated_lines, "READ_TOGETHER", 100)
    hashes = np.random.Generator(np.random.PCG64(0)).integers(0, 1 << 64, 3000, dtype=np.uint64)
    with HashFile(tmp_path / "x") as file:
        for some in (hashes, hashes[:100], hashes[:50]):
            file.add(some)
        assert file.repeated() == 150


@given(st.lists(st.sampled_from([0, 1, 1 << 47, (1 << 48) - 1, 1 << 63, (1 << 64) - 1])))
def test_it_equals_counting_by_hand(tmp_path_factory, numbers):
    with HashFile(tmp_path_factory.mktemp("lines") / "x") as file:
        file.add(np.array(numbers, dtype=np.uint64))
        assert file.repeated() == len(numbers) - len(set(numbers))


def test_what_came_after_a_save_is_forgotten(tmp_path):
    with HashFile(tmp_path / "x") as file:
        file.add(np.array([1, 2], dtype=np.uint64))
        count = file.save()
        file.add(np.array([1, 2], dtype=np.uint64))
    with HashFile(tmp_path / "x", count=count) as file:
        file.add(np.array([2, 3], dtype=np.uint64))
        assert (file.count, file.repeated()) == (4, 1)
