"""The longest copied passage: equal to a search by hand, across pieces, in any script."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.yardsticks import copied, longest_copied, longest_copied_of_each


def by_hand(sample, text):
    best = 0
    for start in range(len(sample)):
        while start + best < len(sample) and sample[start : start + best + 1] in text:
            best += 1
    return best


@settings(deadline=None)
@given(sample=st.text("ab é𝄞", max_size=40), texts=st.lists(st.text("ab é𝄞", max_size=60), max_size=8))
def test_it_is_as_long_as_a_search_by_hand_finds(sample, texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copied, "STRETCH", 16)
        found = longest_copied(sample, texts)
    assert len(found.text) == by_hand(sample, "".join(texts))
    assert found.text in "".join(texts)
    assert sample[found.start : found.start + len(found.text)] == found.text


def test_a_passage_over_several_pieces_is_found():
    text = "".join(random.Random(1).choices("abcdefghijklmnop ", k=5000))
    pieces = [text[start : start + 7] for start in range(0, 5000, 7)]
    assert longest_copied("??" + text[2000:2300] + "!!", pieces).text == text[2000:2300]


def test_a_passage_over_two_stretches_is_found(monkeypatch):
    monkeypatch.setattr(copied, "STRETCH", 1000)
    text = "".join(random.Random(1).choices("abcdefghijklmnop ", k=5000))
    for place in range(2050, 2250, 20):  # the first stretch ends at 2222
        found = longest_copied(text[place : place + 200], [text[:1111], text[1111:2222], text[2222:]])
        assert (found.start, len(found.text)) == (0, 200)


def test_case_and_spaces_count():
    assert longest_copied("To be,  or", ["to be, or"]).text == "o be, "


def test_equal_hashes_do_not_deceive(monkeypatch):
    monkeypatch.setattr(copied, "BASE", 1)  # every window with the same letters has the same hash
    assert longest_copied("abcab", ["bacba"]).text in ("a", "b", "c", "ba", "ab")
    assert len(longest_copied("abcab", ["xxcabxx"]).text) == 3


@pytest.mark.parametrize(("sample", "texts"), [("", ["abc"]), ("abc", []), ("abc", [""]), ("abc", ["xyz"])])
def test_nothing_in_common_is_an_empty_passage(sample, texts):
    assert longest_copied(sample, texts) == copied.Copied("", 0)


def test_of_several_samples_each_has_its_own_passage_while_the_text_passes_by_once():
    pieces = iter(["to be, or ", "not to be"])
    found = longest_copied_of_each(["not to", "", "xyz", "be, or not"], pieces)
    assert [one.text for one in found] == ["not to", "", "", "be, or not"]
    assert not list(pieces)
    assert longest_copied_of_each([], ["text"]) == []
