"""Parts come in the proportions that were asked for, over any stretch of rows, and each row of a part in its turn."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.mixture import LONGEST_PERIOD, Mixture, parse_weights
from pellucid.errors import ConfigError

WEIGHTS = st.lists(st.integers(1, 60), min_size=1, max_size=6)


@settings(max_examples=60)
@given(WEIGHTS)
def test_no_beginning_of_the_run_is_wrong_by_more_than_can_be_helped(weights):
    mixture, bound = Mixture([Fraction(weight) for weight in weights]), 1 - Fraction(1, max(2, 2 * len(weights) - 2))
    rows = np.arange(2 * sum(weights) + 3)
    parts, _ = mixture.places(rows)
    for part, weight in enumerate(mixture.weights):
        wrong = np.cumsum(parts == part) * weight.denominator - (rows + 1) * weight.numerator
        assert int(np.abs(wrong).max()) <= bound * weight.denominator  # Tijdeman's bound: 1/2 for two parts


@settings(max_examples=60)
@given(WEIGHTS, st.integers(0, 10**12))
def test_every_row_of_a_part_comes_once_and_in_order_wherever_one_looks(weights, first):
    mixture = Mixture([Fraction(weight) for weight in weights])
    parts, numbers = mixture.places(np.arange(first, first + 300))
    for part in range(len(weights)):
        assert (np.diff(numbers[parts == part]) == 1).all()
    assert (mixture.places(np.arange(first + 100, first + 200))[1] == numbers[100:200]).all()


def test_it_begins_with_the_first_row_of_each_part():
    parts, numbers = Mixture([Fraction(7), Fraction(3)]).places(np.arange(10))
    assert numbers[parts == 0].tolist() == list(range(7))
    assert numbers[parts == 1].tolist() == list(range(3))


def test_weights_with_five_decimals_are_kept_exactly():
    assert Mixture(parse_weights("0.33333,0.66667", 2)).weights == (Fraction(33333, 100000), Fraction(66667, 100000))


def test_other_weights_are_kept_as_nearly_as_the_longest_period_lets():
    asked = [Fraction(1, 3), Fraction(1, 10**9), Fraction(5, 7)]
    kept = Mixture(asked).weights
    assert sum(kept) == 1
    assert min(kept) > 0
    pairs = zip(kept, asked, strict=True)
    assert all(abs(one - other / sum(asked)) <= Fraction(1, LONGEST_PERIOD) for one, other in pairs)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("0.7", "2 weights, one for each prepared folder, but got 1"),
        ("1,2,3", "but got 3"),
        ("0.7,-0.3", "weights above 0"),
        ("0,1", "weights above 0"),
        ("0.7;0.3", "but got 1"),
        ("a,b", "weights that are numbers"),
        ("nan,1", "weights that are numbers"),
        ("inf,1", "weights that are numbers"),
        ("1/0,1", "weights that are numbers"),
        ("", "but got 1"),
    ],
)
def test_weights_that_make_no_sense_are_a_sentence(written, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse_weights(written, 2)


def test_weights_may_be_any_proportion():
    assert Mixture(parse_weights("70, 30", 2)).weights == Mixture(parse_weights("0.7,0.3", 2)).weights
