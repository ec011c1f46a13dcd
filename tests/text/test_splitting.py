import unicodedata
from itertools import islice, pairwise

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from pellucid.errors import TokenizerError
from pellucid.text.splitting import GPT2_SPLIT, cut_between_words, special_finder, words

LIBRARY = pre_tokenizers.Split(tokenizers.Regex(GPT2_SPLIT), "isolated")
SPECIALS = ["<|a|>", "<|a|><|a|>", "ab", "bcd", "\n\n#"]

# Unassigned code points may be letters in the library's Unicode and not yet in Python's.
assigned = st.characters(exclude_categories=["Cs", "Cn"])
texts = st.text(assigned) | st.text(st.sampled_from("ab'lvesd  \n\n\t\r9²!.é中，\u0301\xa0\x1c𝔘𐍈<|>#"), max_size=60)


def library_words(text):
    return [word for word, _ in LIBRARY.pre_tokenize_str(text)]


@given(texts)
def test_the_words_are_the_librarys(text):
    assert list(words([text])) == library_words(text)


def test_the_words_of_a_book_are_the_librarys(manual):
    assert list(words([manual])) == library_words(manual)


def test_every_letter_and_number_is_in_the_class_the_library_puts_it_in():
    every = (chr(code) for code in range(0x110000))
    for major in "LNSPMZ":
        text = "".join(c for c in every if unicodedata.category(c)[0] == major)
        assert list(words([text])) == library_words(text)


@given(texts, st.lists(st.integers(0, 60)), st.booleans())
@example("don'll", [5], False)
@example("a  b", [2, 3], False)
@example("<|a|><|a|>", [7], True)
@example("<|a|", [4], True)
@example("abcd", [1, 2, 3], True)
def test_a_stream_has_the_words_of_the_whole_wherever_it_is_cut(text, cuts, with_specials):
    specials = SPECIALS if with_specials else []
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert list(words(pieces, specials)) == list(words([text], specials))


@given(texts)
def test_special_tokens_come_out_whole_and_the_longest_wins(text):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([LIBRARY])
    tokenizer.add_special_tokens(SPECIALS)
    encoding = tokenizer.encode(text)
    assert list(words([text], SPECIALS)) == [text[start:end] for start, end in encoding.offsets]


def test_words_come_before_the_stream_ends():
    def endless():
        while True:
            yield "to be or not to be\n"

    assert list(islice(words(endless(), ["<|a|>"]), 3)) == ["to", " be", " or"]


def test_a_word_in_a_hundred_thousand_pieces_is_one_word():
    assert list(words("a" for _ in range(100_000))) == ["a" * 100_000]


def test_an_empty_special_token_is_refused():
    with pytest.raises(TokenizerError, match="an empty one"):
        special_finder(["<|a|>", ""])


@given(texts, st.integers(1, 8))
def test_pieces_cut_between_words_have_the_words_of_the_whole(text, length):
    pieces = list(cut_between_words(text, length))
    assert "".join(pieces) == text
    assert [word for piece in pieces for word in library_words(piece)] == library_words(text)


def test_a_book_is_cut_into_pieces_of_about_the_length_asked_for(manual):
    lengths = [len(piece) for piece in cut_between_words(manual, 1000)]
    assert min(lengths[:-1]) >= 1000
    assert max(lengths) < 1100
