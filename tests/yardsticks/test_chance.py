"""Chance: the logarithm of the alphabet, and the price of what is not in it."""

import math

import pytest

from pellucid.data import escape_bits
from pellucid.yardsticks import chance


def test_it_is_the_logarithm_of_the_number_of_characters():
    assert chance(["abcdefgh", "ab"], ["abab"] * 3).bits == (12.0,) * 3


def test_a_new_character_costs_the_escape_and_counts_as_one_symbol_more():
    score = chance(["abc"], ["abZ", "ab"])
    assert score.bits == pytest.approx((2 * math.log2(4) + escape_bits(3, 3), 2 * math.log2(4)))
    assert score.characters == (3, 2)


def test_an_alphabet_of_one_costs_nothing():
    assert chance(["aaaa"], ["aa"]).bits == (0.0,)
