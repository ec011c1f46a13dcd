import json

import pytest
import tokenizers

from pellucid.errors import TokenizerError
from pellucid.text import GPT2_SPLIT, ListedVocabulary, TextTokenizer, listed_byte_pairs, listed_pieces
from tests.text.awkward_texts import AWKWARD


def taken_apart(tokenizer):
    """The list of a tokenizer.json made here: tokens, kinds, merges."""
    definition = json.loads(tokenizer.definition)
    ids = {**definition["model"]["vocab"], **tokenizer.special_tokens}
    tokens = sorted(ids, key=ids.get)
    kinds = ["special" if token in tokenizer.special_tokens else "plain" for token in tokens]
    return ListedVocabulary(tokens=tokens, kinds=kinds), [tuple(pair) for pair in definition["model"]["merges"]]


@pytest.mark.parametrize("text", [*AWKWARD, "It's 1234 words, isn't it?"])
def test_a_list_of_byte_pairs_gives_the_ids_of_the_tokenizer_it_was_taken_from(byte_pairs, text):
    vocabulary, merges = taken_apart(byte_pairs)
    made = _made(vocabulary, merges)
    original = tokenizers.Tokenizer.from_str(byte_pairs.definition)
    original.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    original.encode_special_tokens = True
    ids = made.encode(text)
    assert ids.tolist() == original.encode(text, add_special_tokens=False).ids
    assert made.decode(ids) == text


_cache = {}


def _made(vocabulary, merges):
    if "made" not in _cache:
        _cache["made"] = listed_byte_pairs(vocabulary, merges, [GPT2_SPLIT])
    return _cache["made"]


LETTERS = ["a", "b", "c"]
WORDS = ["ab", "abc", "bc"]


def small(*more, merges=(("a", "b"), ("b", "c"), ("ab", "c")), whole_words=False):
    tokens = ["</s>", *LETTERS, *WORDS, *(token for token, _ in more)]
    kinds = ["special", *["plain"] * 6, *(kind for _, kind in more)]
    return listed_byte_pairs(ListedVocabulary(tokens=tokens, kinds=kinds), merges, [r"\w+"], whole_words=whole_words)


def test_whole_words_are_tokens_only_where_that_is_the_rule():
    merges = [("b", "c"), ("a", "b")]  # abc is no result of these
    assert small(merges=merges).encode("abc").tolist() == [1, 6]
    assert small(merges=merges, whole_words=True).encode("abc").tolist() == [5]


def test_special_tokens_in_the_middle_at_the_end_and_behind_gaps_keep_their_ids():
    with_gap = small(("[PAD1]", "unused"), ("<|x|>", "special"), ("<tool>", "added"), ("[PAD2]", "unused"))
    assert with_gap.vocab_size == 10  # the unused one at the end is left out
    assert with_gap.encode("ab<tool>c<|x|>", allow_special=True).tolist() == [4, 9, 3, 8]
    assert with_gap.encode("<tool>").tolist() == [9]
    assert with_gap.token_bytes(7) == b""
    assert with_gap.decode([4, 7, 9, 3]) == "ab<tool>c"
    without = small(("<|x|>", "special"), ("<tool>", "added"))
    assert without.encode("ab<tool>c<|x|>", allow_special=True).tolist() == [4, 8, 3, 7]


def test_text_that_spells_a_special_token_stays_text():
    tokenizer = listed_byte_pairs(
        ListedVocabulary(tokens=["a", "b", "ab"], kinds=["plain", "plain", "special"], end="ab"),
        [],
        [r"\w+"],
        whole_words=True,
    )
    assert tokenizer.encode("ab").tolist() == [0, 1]
    assert tokenizer.encode("ab", allow_special=True).tolist() == [2]


def test_the_end_of_a_text_is_a_special_token_before_it_is_a_word():
    vocabulary = ListedVocabulary(tokens=["a", "</s>", "<eos>"], kinds=["plain", "added", "special"])
    tokenizer = listed_byte_pairs(vocabulary, [], [r"\w+"])
    assert tokenizer.end_of_text == "<eos>"
    assert TextTokenizer(tokenizer.definition).end_of_text == "<eos>"


def test_the_end_is_the_one_that_is_told_where_no_name_is_known():
    vocabulary = ListedVocabulary(tokens=["a", "[X]"], kinds=["plain", "special"], end="[X]")
    assert listed_byte_pairs(vocabulary, [], [r"\w+"]).end_of_text_id == 1


PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "ab", "▁a", "▁ab", "aab"]
KINDS = ["unknown", "special", "special", *["byte"] * 256, *["plain"] * 7]
SCORES = [0.0] * 259 + [-9.0, -8.0, -7.0, -2.0, -3.0, -4.0, -1.0]


def pieces(text, **settings):
    tokenizer = listed_pieces(ListedVocabulary(tokens=PIECES, kinds=KINDS), SCORES, **settings)
    return [PIECES[token_id] for token_id in tokenizer.encode(text)]


def test_pieces_are_joined_best_first_as_sentencepiece_does():
    assert pieces("ab") == ["▁ab"]
    assert pieces("aab") == ["▁", "aab"]  # a+ab is better than ▁+a
    assert pieces("ab", space_before=False) == ["ab"]
    assert pieces("a b") == ["▁a", "▁", "b"]


def test_what_has_no_piece_is_spelled_in_bytes():
    assert pieces("é\n", space_before=False) == ["<0xC3>", "<0xA9>", "<0x0A>"]
    assert pieces("<0x0A>", space_before=False) != ["<0x0A>"]


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("space_before", [True, False])
def test_pieces_give_every_text_back(text, space_before):
    tokenizer = listed_pieces(ListedVocabulary(tokens=PIECES, kinds=KINDS), SCORES, space_before=space_before)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("tokens", "kinds", "says"),
    [(["a", "b"], ["plain"], "2 tokens and 1 kinds"), (["a", "b", "a"], ["plain"] * 3, "'a' twice")],
)
def test_a_list_that_contradicts_itself_is_refused(tokens, kinds, says):
    with pytest.raises(TokenizerError, match=says):
        ListedVocabulary(tokens=tokens, kinds=kinds)


def test_unused_tokens_may_be_alike():
    assert ListedVocabulary(tokens=["a", "", ""], kinds=["plain", "unused", "unused"]).used == ["a"]


def test_scores_and_merges_that_do_not_fit_are_refused():
    with pytest.raises(TokenizerError, match="2 scores"):
        listed_pieces(ListedVocabulary(tokens=PIECES, kinds=KINDS), [1, 2])
    with pytest.raises(TokenizerError, match="out of vocabulary"):
        small(merges=[("x", "y")])
