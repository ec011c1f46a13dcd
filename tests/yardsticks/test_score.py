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
