import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.text import GraphemeStream, crop, graphemes
from pellucid.text.graphemes import LONGEST_HELD

EVERYTHING = st.text(st.characters(exclude_categories=[]), max_size=30)
TANGLED = st.text("ae\u0301\u0308👨👩👧\u200d\u200c🏽🇮🇷🇨\r\n한ᄒ\u1161\u11abकि्ष\ufe0f", max_size=30)
WHOLE = [
    "é",
    "e\u0301",
    "👨\u200d👩\u200d👧",
    "🇮🇷",
    "👍🏽",
    "한",
    "\u1112\u1161\u11ab",
    "कि",
    "\r\n",
    "🏳\ufe0f\u200d🌈",
    "中",
]


@pytest.mark.parametrize("one", WHOLE)
def test_what_a_reader_takes_for_one_character_is_one(one):
    assert list(graphemes(one)) == [one]
    assert list(graphemes(f"a{one}b")) == ["a", one, "b"]


@given(EVERYTHING | TANGLED)
def test_graphemes_joined_are_the_text(text):
    assert "".join(graphemes(text)) == text


@given(EVERYTHING | TANGLED, st.integers(0, 30))
def test_a_cropped_text_is_its_first_graphemes(text, most):
    assert crop(text, most) == "".join(list(graphemes(text))[:most])


@given(TANGLED, st.lists(st.integers(0, 4), max_size=30))
def test_a_stream_gives_every_grapheme_whole_however_its_text_is_cut(text, cuts):
    stream, place, given_pieces = GraphemeStream(), 0, []
    for size in [*cuts, len(text)]:
        given_pieces.append(stream.push(text[place : place + size]))
        place += size
    given_pieces.append(stream.finish())
    assert "".join(given_pieces) == text
    assert [one for piece in given_pieces for one in graphemes(piece)] == list(graphemes(text))


def test_a_stream_does_not_wait_for_ever():
    stream = GraphemeStream()
    given_pieces = [stream.push("a"), *(stream.push("\u0301") for _ in range(3 * LONGEST_HELD))]
    assert len("".join(given_pieces)) > 2 * LONGEST_HELD
