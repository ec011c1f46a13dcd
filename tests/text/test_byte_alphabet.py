import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, pre_tokenizers

from pellucid.errors import TokenizerError
from pellucid.text.byte_alphabet import CHARACTERS, spell, unspell, utf8


def test_the_stand_ins_are_the_librarys():
    assert sorted(CHARACTERS) == sorted(pre_tokenizers.ByteLevel.alphabet())
    library = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    text = "".join(map(chr, range(0x800)))
    assert spell(text.encode()) == library.pre_tokenize_str(text)[0][0]


@given(st.binary())
def test_any_bytes_can_be_spelled_and_read_back(token):
    assert unspell(spell(token)) == token


@given(st.binary())
def test_the_librarys_decoder_reads_the_spelling_as_we_do(token):
    assert decoders.ByteLevel().decode([spell(token)]) == token.decode("utf-8", "replace")


def test_a_character_that_stands_for_no_byte_is_told_apart():
    assert unspell("a b") is None


def test_half_a_character_is_named_with_its_place():
    with pytest.raises(TokenizerError, match=r"lone surrogate U\+DC80 as character 3"):
        utf8("ab\udc80")
