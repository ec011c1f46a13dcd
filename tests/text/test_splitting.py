import unicodedata
from itertools import islice, pairwise

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from pellucid.errors import TokenizerError
from pellucid.text.splitting import GPT2_SPLIT, QWEN35_SPLIT, cut_between_words, special_finder, words

LIBRARY = pre_tokenizers.Split(tokenizers.Regex(GPT2_SPLIT), "isolated")
RULES = {
    "gpt2": LIBRARY,
    "qwen35": pre_tokenizers.Split(tokenizers.Regex(QWEN35_SPLIT), "isolated"),
}
SPECIALS = ["<|a|>", "<|a|><|a|>", "ab", "bcd", "\n\n#"]

# Unassigned code points may be letters in the library's Unicode and not yet in Python's.
assigned = st.characters(exclude_categories=["Cs", "Cn"])
texts = st.text(assigned) | st.text(st.sampled_from("ab'lvesd  \n\n\t\r9²!.é中，\u0301\xa0\x1c𝔘𐍈<|>#"), max_size=60)


# Of every kind of character that a rule treats apart, some, so that short texts have every pair of them.
dense = st.text(
    st.sampled_from(
        "ab'lvesSDL_ \n\t\r9²ⅷ½٣!-/.é中々，。।؟\u0301\u064e\u093f\u0e34\u302a\u3099\u20e3\u200c\u200d\ufe0f"
        "\x1c\x85\xa0\u2028\u3000𝔘𐍈👍🏽\U000e0100<|>#"
    ),
    max_size=40,
)


def library_words(text, rule="gpt2"):
    return [word for word, _ in RULES[rule].pre_tokenize_str(text)]


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


@pytest.mark.parametrize("rule", RULES)
@given(text=texts | dense, length=st.integers(1, 8))
@example(text="e\u0301a", length=1)
@example(text="a \u0301", length=1)
@example(text="a  b", length=1)
def test_pieces_cut_between_words_have_the_words_of_the_whole(rule, text, length):
    pieces = list(cut_between_words(text, length))
    assert "".join(pieces) == text
    assert [word for piece in pieces for word in library_words(piece, rule)] == library_words(text, rule)


@pytest.mark.parametrize("rule", RULES)
def test_a_text_may_be_cut_after_a_letter_before_any_sign_in_the_list(rule):
    for sign in map(chr, [*range(0x3100), *range(0xFE00, 0x10000)]):
        text = f"a{sign}中{sign}{sign}b9{sign}\n"
        pieces = list(cut_between_words(text, 1))
        assert [word for piece in pieces for word in library_words(piece, rule)] == library_words(text, rule), sign


def test_a_book_is_cut_into_pieces_of_about_the_length_asked_for(manual):
    lengths = [len(piece) for piece in cut_between_words(manual, 1000)]
    assert min(lengths[:-1]) >= 1000
    assert max(lengths) < 1100


def test_a_text_without_spaces_is_cut_at_its_signs():
    text = "子曰：「學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？」" * 100
    assert max(len(piece) for piece in cut_between_words(text, 100)) < 120


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("می\u200cخواهم بروم", ["می", "\u200cخواهم", " بروم"]),  # the joiner is no word of its own
        ("مُحَمَّد", ["مُحَمَّد"]),
        ("नमस्ते दुनिया", ["नमस्ते", " दुनिया"]),
        ("กินข้าว ดี", ["กินข้าว", " ดี"]),
        ("cafe\u0301 nai\u0308ve", ["cafe\u0301", " nai\u0308ve"]),
        ("café naïve", ["café", " naïve"]),
        ("中文，標點", ["中文", "，標點"]),
        ("in 1984, 3.14", ["in", " ", "1", "9", "8", "4", ",", " ", "3", ".", "1", "4"]),
        ("don't WE'LL", ["don", "'t", " WE", "'LL"]),
        ("f(a_b)  # c;\n\n    d", ["f", "(a", "_b", ")", " ", " #", " c", ";\n\n", "   ", " d"]),
    ],
)
def test_words_of_many_scripts_are_left_whole(text, cut):
    assert library_words(text, "qwen35") == cut


@given(text=texts | dense)
def test_no_mark_is_cut_from_its_letter_and_no_two_digits_stay_together(text):
    for before, after in pairwise(library_words(text, "qwen35")):
        marks_a_letter = unicodedata.category(before[-1])[0] in "LM" and unicodedata.category(after[0])[0] == "M"
        assert not marks_a_letter
    for word in library_words(text, "qwen35"):
        assert len(word) == 1 or not any(unicodedata.category(character)[0] == "N" for character in word)


def test_on_text_without_marks_it_is_the_rule_of_qwen3(manual):
    """Which programs that know the shape of Qwen3 alone, and no name of a rule, cut words by."""
    qwen3 = QWEN35_SPLIT.replace(r"[\p{L}\p{M}]", r"\p{L}").replace(r"\p{M}", "")
    cut = pre_tokenizers.Split(tokenizers.Regex(qwen3), "isolated").pre_tokenize_str(manual)
    assert [word for word, _ in cut] == library_words(manual, "qwen35")


@pytest.mark.real
@given(text=texts | dense)
def test_it_is_the_rule_of_qwens_own_tokenizer(text):
    theirs = pytest.importorskip("transformers.models.qwen3_5.tokenization_qwen3_5").PRETOKENIZE_REGEX
    cut = pre_tokenizers.Split(tokenizers.Regex(theirs), "isolated").pre_tokenize_str(text)
    assert [word for word, _ in cut] == library_words(text, "qwen35")


@pytest.mark.real
@given(text=texts | dense)
def test_the_regex_library_cuts_the_same_words(text):
    regex = pytest.importorskip("regex")
    assert regex.findall(QWEN35_SPLIT, text) == library_words(text, "qwen35")
