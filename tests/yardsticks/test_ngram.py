"""Witten–Bell n-grams: equal to a loop over dictionaries, and real probabilities."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import escape_bits
from pellucid.yardsticks import witten_bell


def by_the_book(training, held_out, order):
    """The formula of the docstring with dictionaries: bits of each passage."""
    counts, totals, followers = Counter(), Counter(), defaultdict(set)
    alphabet = set("".join(training))
    for text in training:
        for place in range(len(text)):
            for length in range(min(order - 1, place) + 1):
                context, character = text[place - length : place], text[place]
                counts[context, character] += 1
                totals[context] += 1
                followers[context].add(character)
    escape = escape_bits(sum(map(len, training)), len(alphabet))

    def probability(context, character):
        shorter = probability(context[1:], character) if context else 1 / len(alphabet)
        seen, kinds = totals[context], len(followers[context])
        return (counts[context, character] + kinds * shorter) / (seen + kinds) if seen else shorter

    return [
        sum(
            -math.log2(probability(text[max(0, place - order + 1) : place], text[place]))
            if text[place] in alphabet
            else escape
            for place in range(len(text))
        )
        for text in held_out
    ]


TEXTS = st.lists(st.text("abcé𝄞\0", min_size=1, max_size=60), min_size=1, max_size=4)


@settings(deadline=None)
@given(training=TEXTS, held_out=TEXTS)
def test_every_order_equals_the_formula_in_dictionaries(training, held_out):
    scores = witten_bell(training, held_out, highest=5)
    for order, score in enumerate(scores, 1):
        assert score.bits == pytest.approx(by_the_book(training, held_out, order), rel=1e-9)
        assert score.characters == tuple(map(len, held_out))


def test_probabilities_of_all_characters_sum_to_one():
    training, alphabet = ["abracadabra, a bar and a cabra"] * 3, sorted(set("abracadabra, a bar and a cabra"))
    for order in (1, 2, 4):
        before = witten_bell(training, ["abra"], highest=4)[order - 1].bits[0]
        after = [witten_bell(training, ["abra" + c], highest=4)[order - 1].bits[0] for c in alphabet]
        assert sum(2 ** (before - bits) for bits in after) == pytest.approx(1)


def test_the_first_is_called_letters_and_the_others_by_their_order():
    assert [score.name for score in witten_bell(["ab"], ["a"], highest=3)] == ["letters", "2-gram", "3-gram"]


def test_a_new_character_costs_the_escape_and_stays_in_the_denominator():
    (letters,) = witten_bell(["abab"], ["aZ"], highest=1)
    assert letters.bits[0] == pytest.approx(1.0 + escape_bits(4, 2))
    assert letters.characters == (2,)


def test_strings_are_not_counted_across_the_seams():
    (_, apart) = witten_bell(["aa", "bb"] * 20, ["ab"], highest=2)
    (_, together) = witten_bell(["aabb" * 20], ["ab"], highest=2)
    assert apart.bits[0] > together.bits[0] + 2


def test_large_alphabets_do_not_overflow():
    random = np.random.default_rng(0)
    text = "".join(map(chr, random.integers(0x4E00, 0x9FFF, size=20_000)))
    scores = witten_bell([text], [text[:500]])
    assert all(np.isfinite(score.bits_per_character) for score in scores)
    assert scores[7].bits_per_character < scores[0].bits_per_character
