"""An order without memory: one to one, different for every key, and fair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.shuffle import mixed, shuffled


@settings(deadline=None)
@given(count=st.integers(1, 3000), key=st.integers(0, 2**64 - 1))
def test_every_thing_comes_once(count, key):
    assert np.array_equal(np.sort(shuffled(np.arange(count), count, key=key)), np.arange(count))


def test_one_index_gives_what_all_together_give():
    everything = shuffled(np.arange(1000), 1000, key=3)
    assert [int(shuffled(np.array([i]), 1000, key=3)[0]) for i in (0, 7, 999)] == everything[[0, 7, 999]].tolist()


def test_another_key_is_another_order():
    orders = {tuple(shuffled(np.arange(50), 50, key=key).tolist()) for key in range(200)}
    assert len(orders) == 200


@pytest.mark.parametrize("count", [2, 3, 5, 16, 17])
def test_each_thing_is_equally_often_first(count):
    keys = 200 * count
    first = [int(shuffled(np.array([0]), count, key=mixed(5, key))[0]) for key in range(keys)]
    counts = np.bincount(first, minlength=count)
    chi_square = ((counts - 200) ** 2 / 200).sum()
    assert chi_square < count - 1 + 5 * np.sqrt(2 * count)  # five standard deviations


def test_neighbours_do_not_stay_neighbours():
    order = shuffled(np.arange(100_000), 100_000, key=9)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.02
    assert (np.abs(np.diff(order)) == 1).mean() < 1e-4


def test_billions_of_things_need_no_memory():
    places = shuffled(np.arange(5_000_000_000, 5_000_000_100), 5_000_000_100, key=1)
    assert len(set(places.tolist())) == 100
    assert places.min() >= 0
    assert places.max() < 5_000_000_100


def test_the_order_is_the_same_for_ever():
    assert shuffled(np.arange(8), 8, key=0).tolist() == [6, 7, 4, 5, 1, 0, 3, 2]


def test_mixing_takes_negative_and_very_large_numbers():
    assert mixed(-1) != mixed(1)
    assert mixed(2**64) == mixed(0)
