import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.errors import TokenizerError
from pellucid.text import character_tokenizer, choose_vocabulary, train_byte_pairs
from pellucid.text.vocabulary import CHARACTERS_PER_ID, FEW_LETTERS, MOST_PARTS, SIZES, share_of_parts
from tests.text.awkward_texts import AWKWARD


def made_up(letters, length, *, seed=4):
    """Text in a script of so many letters, of words that are frequent or rare as in any language."""
    generator = random.Random(seed)
    script = [chr(0x4E00 + number) for number in range(letters)]
    words = [generator.choice(script) + letter for letter in script]
    frequencies = [1 / (1 + rank) for rank in range(letters)]
    text = ""
    while len(text) < length:
        text += " ".join(generator.choices(words, frequencies, k=9)) + "。\n"
    return text[:length]


def without_words(letters, length):
    """Text of so many letters, each as frequent as the others, beside which no other stands more often."""
    generator = random.Random(4)
    return "".join(chr(0x4E00 + generator.randrange(letters)) for _ in range(length))


def test_english_keeps_the_least_that_its_size_has(manual):
    for least in (512, 2048):
        choice = choose_vocabulary([manual], least=least)
        assert (choice.kind, choice.vocab_size, list(choice.shares)) == ("bpe", least, [least])
        assert choice.tokenizer.fingerprint == train_byte_pairs([manual], least).fingerprint
        assert choice.reason.endswith("of a character")


def test_a_script_of_many_letters_gets_the_smallest_vocabulary_that_keeps_them_whole():
    text = made_up(230, 60_000)
    choice = choose_vocabulary([text])
    assert (choice.kind, choice.vocab_size) == ("bpe", 1024)
    assert choice.shares[512] > MOST_PARTS >= choice.shares[1024]
    assert choice.shares[1024] == share_of_parts(train_byte_pairs([text], 1024), [text])
    assert choice.reason == f"only {100 * choice.shares[1024]:.1f} % of its tokens are parts of a character"


def test_where_no_vocabulary_keeps_them_whole_every_character_is_a_token():
    text = without_words(3_000, 60_000)
    choice = choose_vocabulary([text])
    assert choice.kind == choice.tokenizer.kind == "characters"
    assert choice.tokenizer.fingerprint == character_tokenizer([text]).fingerprint
    assert choice.vocab_size == len(set(text)) + 1
    most = max(choice.shares)
    assert most == 1024  # 2,048 would need 81,920 characters
    parts = f"{100 * choice.shares[most]:.1f} % would be parts of a character"
    assert choice.reason == f"of 1,024 byte pairs, the most for a text of this length, {parts}"


def test_a_longer_text_of_the_same_script_can_teach_more_byte_pairs():
    sizes = [choose_vocabulary([made_up(230, length)]).vocab_size for length in (8_000, 60_000)]
    assert sizes == [512, 1024]


def test_byte_pairs_that_were_asked_for_are_given():
    choice = choose_vocabulary([without_words(3_000, 60_000)], characters_allowed=False)
    assert (choice.kind, choice.vocab_size) == ("bpe", 1024)
    assert choice.reason.endswith("% of its tokens are parts of a character")


def test_characters_that_hardly_ever_come_twice_are_no_tokens():
    text = "".join(map(chr, range(0x4E00, 0x6000)))
    choice = choose_vocabulary([text])
    assert choice.kind == "bpe"
    assert choice.reason == "its 4,608 different characters come too seldom each"


@pytest.mark.parametrize("length", [5_000, 30_000, 100_000])
def test_no_text_gets_a_vocabulary_too_large_to_learn(length):
    for text in (made_up(300, length), made_up(3_000, length), without_words(3_000, length)):
        choice = choose_vocabulary([text])
        assert choice.vocab_size <= max(SIZES[0], length // CHARACTERS_PER_ID) or choice.kind == "characters"
        assert choice.vocab_size <= max(SIZES[0], length // 4)


def test_the_pieces_a_text_comes_in_make_no_difference_to_characters():
    text = without_words(3_000, 60_000)
    pieces = [text[start : start + 7_919] for start in range(0, len(text), 7_919)]
    assert choose_vocabulary(pieces).tokenizer.fingerprint == choose_vocabulary(text).tokenizer.fingerprint


def test_every_character_of_a_large_text_is_known_though_pairs_are_learned_from_a_sample():
    text = without_words(3_000, 100_000)
    rare = "".join(map(chr, range(0x6000, 0x6800)))
    pieces = [text, *(letter + text[:5_000] for letter in rare[:20])]
    choice = choose_vocabulary(pieces, sample_bytes=20_000)
    assert choice.kind == "characters"
    assert choice.tokenizer.unknown_characters(text + rare[:20]) == ""


def test_a_text_with_fewer_pairs_than_asked_for_has_the_number_reached():
    choice = choose_vocabulary(["banana bandana"])
    assert (choice.kind, choice.vocab_size, list(choice.shares)) == ("bpe", 260, [260])


def test_what_cannot_be_learned_from_is_refused():
    with pytest.raises(TokenizerError, match=r"U\+DCFF"):
        choose_vocabulary(["half \udcff"])
    with pytest.raises(TokenizerError, match="at least 257"):
        choose_vocabulary(["text"], least=100)


@settings(max_examples=30)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from([text for text in AWKWARD if text])
)
def test_any_text_comes_back_to_the_letter_from_the_vocabulary_chosen_for_it(text):
    tokenizer = choose_vocabulary([text]).tokenizer
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_share_of_parts_is_counted_over_the_text_not_the_vocabulary(byte_pairs):
    assert share_of_parts(byte_pairs, ["the " * 50]) == 0.0
    text = "癖" * 30 + "the the"  # three bytes each, that English has no merges for
    assert share_of_parts(byte_pairs, [text]) == pytest.approx(90 / len(byte_pairs.encode(text)))
    assert share_of_parts(byte_pairs, []) == 0.0


@pytest.mark.parametrize(("letters", "kind"), [(FEW_LETTERS - 1, "bpe"), (FEW_LETTERS + 1, "characters")])
def test_an_alphabet_stays_byte_pairs_though_a_short_text_leaves_some_in_pieces(letters, kind):
    """As a page of Hindi, where 512 byte pairs, 16 % of them in pieces, were better than 100 characters."""
    text = without_words(letters, 8_000) + "。"
    choice = choose_vocabulary([text])
    assert choice.shares[512] > MOST_PARTS
    assert choice.kind == kind
    if kind == "bpe":
        parts = f"{100 * choice.shares[512]:.1f} % of its tokens are parts of a character"
        assert choice.reason == f"of 512, the most for a text of this length, {parts}"
