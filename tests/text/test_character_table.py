import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pellucid.text.character_table import UNKNOWN, CharacterTable, code_points, distinct_characters

any_text = st.text(st.characters() | st.sampled_from("\ud800\udfff\U0010ffff"))


@given(any_text)
def test_code_points_are_those_of_ord(text):
    assert code_points(text).tolist() == [ord(character) for character in text]


@given(st.lists(any_text))
def test_distinct_characters_are_those_of_a_set(texts):
    assert distinct_characters(iter(texts)) == sorted(set("".join(texts)))


@given(st.dictionaries(st.characters(), st.integers(0, 2**40)), any_text)
def test_encoding_is_a_look_up_per_character(ids, text):
    encoded = CharacterTable(ids).encode(text)
    assert encoded.dtype == np.int64
    assert encoded.tolist() == [ids.get(character, UNKNOWN) for character in text]
