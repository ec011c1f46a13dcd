import pytest

from pellucid.yardsticks import share_known
from tests.train.small_run import small_text


def test_half_a_text_that_is_known_is_half_known():
    old, new = small_text(20_000, seed=1), small_text(20_000, seed=2)
    assert share_known([old[:5000], new[:5000]], [old]) == pytest.approx(0.5, abs=0.05)


def test_another_text_is_not_known_though_its_words_are():
    assert share_known([small_text(20_000, seed=1)], [small_text(20_000, seed=2)]) == 0


def test_what_is_known_may_come_in_pieces():
    text = small_text(20_000)
    pieces = [text[start : start + 5000] for start in range(0, 20_000, 5000)]
    assert share_known([text], pieces) > 0.95


def test_a_rule_of_dashes_says_nothing_and_neither_does_a_word():
    assert share_known(["-" * 500], ["-" * 500]) is None
    assert share_known(["to be or not to be"], ["to be or not to be"]) is None
    assert share_known([], ["text"]) is None


def test_a_long_text_is_tried_in_a_few_hundred_places():
    tried = []

    class Piece(str):
        __slots__ = ()

        def __contains__(self, stretch):
            tried.append(stretch)
            return False

    share_known([small_text(100_000)], [Piece()])
    assert 190 <= len(tried) <= 210
