"""Scores: ratios, and how far they may be off."""

import math

import numpy as np
import pytest

from pellucid.yardsticks import Score


def test_bits_per_character_is_a_ratio_of_sums():
    assert Score("x", (10.0, 90.0), (10, 30)).bits_per_character == 2.5


def test_passages_of_one_length_give_the_error_of_a_mean():
    bits = np.array([20.0, 22.0, 19.0, 25.0, 21.0])
    score = Score("x", tuple(bits.tolist()), (10,) * 5)
    assert score.standard_error == pytest.approx(np.std(bits / 10, ddof=1) / math.sqrt(5))


def test_the_error_is_the_spread_over_many_drawings():
    random = np.random.default_rng(0)
    drawn = []
    for _ in range(2000):
        characters = random.integers(500, 1500, size=10)
        bits = characters * random.normal(2.0, 0.3, size=10)
        drawn.append(Score("x", tuple(bits.tolist()), tuple(characters.tolist())))
    spread = np.std([score.bits_per_character for score in drawn])
    assert np.sqrt(np.mean([score.standard_error**2 for score in drawn])) == pytest.approx(spread, rel=0.1)


def test_one_passage_has_no_error():
    assert Score("x", (10.0,), (10,)).standard_error is None


def test_some_of_the_passages_have_a_score_of_their_own():
    score = Score("x", (1.0, 2.0, 3.0, 4.0), (1, 1, 1, 1), note="n")
    assert score.of_passages(slice(0, None, 2)) == Score("x", (1.0, 3.0), (1, 1), note="n")


def test_the_lead_over_a_rival_on_the_same_passages_has_a_far_smaller_error():
    random = np.random.default_rng(0)
    hard = random.normal(2.0, 0.3, size=10)
    ours = Score("ours", tuple((1000 * (hard - 0.1 + random.normal(0, 0.01, 10))).tolist()), (1000,) * 10)
    theirs = Score("theirs", tuple((1000 * hard).tolist()), (1000,) * 10)
    lead, error = ours.lead_over(theirs)
    assert lead == pytest.approx(0.1, abs=0.01)
    assert error < 0.1 * ours.standard_error
    assert theirs.lead_over(ours) == pytest.approx((-lead, error))


def test_on_other_passages_a_lead_has_no_error():
    assert Score("a", (20.0,), (10,)).lead_over(Score("b", (60.0,), (20,))) == (1.0, None)
