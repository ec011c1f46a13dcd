import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import TokenizerError
from pellucid.text import character_tokenizer, load_tokenizer

whole_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(whole_text)
def test_a_text_comes_back_to_the_letter(text):
    tokenizer = character_tokenizer([text])
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50))
def test_the_quick_path_gives_the_librarys_ids(text):
    tokenizer = character_tokenizer([text])
    library = tokenizers.Tokenizer.from_str(tokenizer.definition)
    library.encode_special_tokens = True
    assert tokenizer.encode(text).tolist() == library.encode(text).ids
    assert library.decode(library.encode(text).ids) == text


def test_ids_are_the_end_of_text_then_code_points_in_order():
    tokenizer = character_tokenizer(["ba", "c\n"])
    assert tokenizer.kind == "characters"
    assert tokenizer.vocab_size == 5
    assert tokenizer.end_of_text_id == 0
    assert tokenizer.encode("\nabc").tolist() == [1, 2, 3, 4]


def test_the_pieces_a_text_comes_in_make_no_difference(manual):
    pieces = (manual[start : start + 7919] for start in range(0, len(manual), 7919))
    assert character_tokenizer(pieces).fingerprint == character_tokenizer([manual]).fingerprint


def test_unknown_characters_are_listed_each_once():
    tokenizer = character_tokenizer(["abc"])
    assert tokenizer.unknown_characters("d?ad? b") == "d? "
    with pytest.raises(TokenizerError) as refusal:
        tokenizer.encode("d?ad")
    assert str(refusal.value) == (
        "Expected text made of the 3 characters this tokenizer knows, but got the unknown 'd' (U+0064), '?' (U+003F): "
        "leave them out, or train on text that has them."
    )


def test_an_unknown_character_that_cannot_be_seen_is_named():
    with pytest.raises(TokenizerError, match=r"unknown zero width space \(U\+200B\), line end \(U\+000A\), space"):
        character_tokenizer(["abc"]).encode("a\u200bb\n ")


def test_a_page_of_unknown_characters_is_counted_not_printed():
    unknown = "".join(map(chr, range(0x4E00, 0x5200)))
    with pytest.raises(TokenizerError, match="and 984 more") as refusal:
        character_tokenizer(["abc"]).encode(unknown)
    assert len(str(refusal.value)) < 2500


def test_the_sentence_about_unknown_characters_can_be_printed_anywhere():
    with pytest.raises(TokenizerError) as refusal:
        character_tokenizer(["abc"]).encode("\ud800\x1b[2J\u202e")
    assert str(refusal.value).isprintable()


def test_an_unknown_character_in_one_text_of_many_is_found():
    with pytest.raises(TokenizerError, match="'x'"):
        character_tokenizer(["abc"]).encode_batch(["ab", "xa"])


def test_an_empty_prompt_works_without_space_or_line_end():
    tokenizer = character_tokenizer(["abc"])
    assert tokenizer.encode("").tolist() == []
    assert tokenizer.decode([tokenizer.end_of_text_id]) == ""


def test_text_that_spells_the_end_of_text_stays_text():
    text = "a<|endoftext|>b"
    tokenizer = character_tokenizer([text])
    assert tokenizer.end_of_text_id not in tokenizer.encode(text)
    assert tokenizer.encode(text, allow_special=True).tolist() == [*tokenizer.encode("a"), 0, *tokenizer.encode("b")]


def test_a_byte_order_mark_in_the_middle_is_a_character():
    tokenizer = character_tokenizer(["a\ufeffb"])
    assert tokenizer.decode(tokenizer.encode("b\ufeffa")) == "b\ufeffa"


def test_line_ends_are_kept_as_they_are():
    tokenizer = character_tokenizer(["a\r\nb\rc\n"])
    assert tokenizer.decode(tokenizer.encode("a\r\nb\rc\n\r\n")) == "a\r\nb\rc\n\r\n"


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_makes_no_tokenizer(texts):
    with pytest.raises(TokenizerError, match="not empty"):
        character_tokenizer(texts)


def test_half_a_character_makes_no_tokenizer():
    with pytest.raises(TokenizerError, match=r"U\+D800"):
        character_tokenizer(["a\ud800"])


def test_a_saved_tokenizer_is_the_same(tmp_path):
    tokenizer = character_tokenizer(["naïve 中文 👍\n"])
    loaded = load_tokenizer(tokenizer.save(tmp_path))
    assert (loaded.kind, loaded.fingerprint, loaded.vocab_size) == ("characters", tokenizer.fingerprint, 11)
    assert loaded.encode("中 👍").tolist() == tokenizer.encode("中 👍").tolist()
