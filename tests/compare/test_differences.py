import math
import random
import statistics

import pytest

from pellucid.compare import difference, grouped, read_run
from pellucid.compare.differences import interval, student
from tests.compare.made_runs import made_run


def variant(folder, name, by_seed, **changes):
    runs = [made_run(folder / f"{name}-seed-{seed}", seed=seed, bits=bits, **changes) for seed, bits in by_seed.items()]
    (group,) = grouped([read_run(path) for path in runs])
    return group


def test_what_is_hard_for_both_does_not_widen_the_interval(tmp_path):
    ours = variant(tmp_path, "a", {0: (101.0, 301.0, 201.5, 400.5)})
    theirs = variant(tmp_path, "b", {0: (100.0, 300.0, 200.0, 400.0)})
    found = difference(ours, theirs)
    assert found.bits == pytest.approx(0.01)
    assert found.high - found.low < 0.02
    assert found.is_clear
    assert (found.seeds, found.passages) == (1, 4)


def test_the_interval_by_hand(tmp_path):
    ours = variant(tmp_path, "a", {0: (110.0, 112.0, 108.0, 110.0), 1: (114.0, 116.0, 112.0, 114.0)})
    theirs = variant(tmp_path, "b", {0: (100.0,) * 4, 1: (100.0,) * 4})
    found = difference(ours, theirs)
    seeds = 0.04**2 / 2 / 2  # two seeds, 0.10 and 0.14: variance 0.0008, of the mean a half of it
    passages = statistics.variance([0.12, 0.14, 0.10, 0.12]) / 4
    freedom = (seeds + passages) ** 2 / (seeds**2 / 1 + passages**2 / 3)
    assert found.bits == pytest.approx(0.12)
    assert found.high - found.bits == pytest.approx(student(freedom) * math.sqrt(seeds + passages))


def test_seeds_are_paired_and_only_those_that_both_have_count(tmp_path):
    ours = variant(tmp_path, "a", {0: (101.0,) * 4, 1: (201.0,) * 4, 2: (350.0,) * 4})
    theirs = variant(tmp_path, "b", {0: (100.0,) * 4, 1: (200.0,) * 4})
    found = difference(ours, theirs)
    assert (found.bits, found.low, found.high, found.seeds) == pytest.approx((0.01, 0.01, 0.01, 2))


def test_other_seeds_are_compared_by_their_means(tmp_path):
    ours = variant(tmp_path, "a", {0: (101.0,) * 4, 1: (103.0,) * 4})
    theirs = variant(tmp_path, "b", {7: (100.0,) * 4, 8: (104.0,) * 4})
    found = difference(ours, theirs)
    assert found.seeds == 0
    assert found.bits == pytest.approx(0.0)
    assert not found.is_clear


def test_other_passages_are_compared_by_their_errors(tmp_path):
    ours = variant(tmp_path, "a", {0: (100.0, 101.0)}, characters=(100, 100))
    found = difference(ours, variant(tmp_path, "b", {0: (100.0,) * 4}))
    assert found.passages == 0
    assert found.high - found.low == pytest.approx(2 * student(2) * math.sqrt(2 * 0.05**2))


def test_without_a_sound_run_there_is_no_difference(tmp_path):
    sound = variant(tmp_path, "a", {0: (100.0,) * 4})
    assert difference(variant(tmp_path, "b", {0: (900.0,) * 4}), sound) is None


def test_student_is_wide_where_little_is_known():
    assert student(1) == 12.706
    assert student(1e9) == pytest.approx(1.96, abs=1e-3)
    assert student(2.5) == pytest.approx(3.63, abs=0.1)  # exact: 3.558
    assert interval(1.0, []) == (None, None)


def test_nineteen_of_twenty_intervals_hold_the_truth():
    """Passages and seeds both drawn anew each time: the interval must know both."""
    dice, held = random.Random(0), 0
    for _ in range(400):
        seeds = [dice.gauss(0, 0.02) for _ in range(3)]
        passages = [dice.gauss(0, 0.05) for _ in range(10)]
        cells = [[seed + passage + dice.gauss(0, 0.02) for passage in passages] for seed in seeds]
        of_seeds, of_passages = (
            list(map(statistics.fmean, cells)),
            list(map(statistics.fmean, zip(*cells, strict=True))),
        )
        errors = [(statistics.variance(of_seeds) / 3, 2), (statistics.variance(of_passages) / 10, 9)]
        low, high = interval(statistics.fmean(of_seeds), errors)
        held += low <= 0 <= high
    assert 0.94 <= held / 400 <= 0.995
