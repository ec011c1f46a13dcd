import random
import tracemalloc
from collections import Counter
from itertools import islice, pairwise

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import DataError, TokenizerError
from pellucid.text import GPT2_SPLIT, HandTokenizer, byte_pair_tokenizer, train_byte_pairs_by_hand
from pellucid.text.byte_pairs_by_hand import merge_word
from pellucid.text.splitting import words
from tests.text.awkward_texts import AWKWARD
from tests.text.gpt2 import gpt2_of_tiktoken, gpt2_vocabulary

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def learned(manual):
    return train_byte_pairs_by_hand([manual[:200_000]], 1000, [END])


@pytest.fixture(scope="module")
def tokenizer(learned):
    return HandTokenizer(*learned, [END])


@pytest.fixture(scope="module")
def oracle(tokenizer):
    ranks = {token: token_id for token_id, token in tokenizer.vocab.items() if token_id != 0}
    return tiktoken.Encoding("by hand", pat_str=GPT2_SPLIT, mergeable_ranks=ranks, special_tokens={END: 0})


def merges_by_definition(text, num_merges):
    """Count every pair of the whole text again for each merge."""
    spelled = [[bytes([byte]) for byte in word.encode()] for word in words([text])]
    merges = []
    for _ in range(num_merges):
        counts = Counter(pair for tokens in spelled for pair in pairwise(tokens))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        spelled = [join_everywhere(tokens, best) for tokens in spelled]
    return merges


def join_everywhere(tokens, pair):
    tokens, place = list(tokens), 0
    while place < len(tokens) - 1:
        if (tokens[place], tokens[place + 1]) == pair:
            tokens[place : place + 2] = [pair[0] + pair[1]]
        place += 1
    return tokens


def test_the_worked_example_gives_the_merges_of_the_course():
    text = "\n".join(["low"] * 5 + ["lower"] * 2 + ["widest"] * 3 + ["newest"] * 6)
    _, merges = train_byte_pairs_by_hand([text], 262, [])
    assert [left + right for left, right in merges] == [b"st", b"est", b"ow", b"low", b"west", b"ne"]


@given(st.text(st.sampled_from("ab c\n癖"), max_size=40), st.integers(0, 12))
def test_merges_are_those_of_the_definition(text, num_merges):
    _, merges = train_byte_pairs_by_hand([text], 256 + num_merges, [])
    assert merges == merges_by_definition(text, num_merges)


def test_merges_of_prose_are_those_of_the_definition(manual):
    text = manual[50_000:53_000]
    assert train_byte_pairs_by_hand([text], 400, [])[1] == merges_by_definition(text, 144)


def test_ties_go_to_the_lexicographically_greatest_pair():
    _, merges = train_byte_pairs_by_hand(["AB\nBA\nBZ\nABB"], 257, [])
    assert merges == [(b"A", b"B")]
    _, merges = train_byte_pairs_by_hand(["ab\ncd\nca"], 257, [])
    assert merges == [(b"c", b"d")]


def test_the_vocabulary_is_specials_then_bytes_then_merges_in_order(learned):
    vocab, merges = learned
    assert list(vocab) == list(range(1000))
    assert list(vocab.values()) == [
        END.encode(),
        *(bytes([byte]) for byte in range(256)),
        *(left + right for left, right in merges),
    ]


def test_special_tokens_are_neither_counted_nor_merged_across():
    text = f"!!{END}!!\n" * 50
    vocab, _ = train_byte_pairs_by_hand([text], 270, [END])
    assert set(vocab.values()) == {END.encode(), b"!!", *(bytes([byte]) for byte in range(256))}


def test_the_same_special_token_twice_is_one():
    vocab, _ = train_byte_pairs_by_hand(["abab"], 258, [END, END])
    assert len(vocab) == 258
    assert list(vocab.values()).count(END.encode()) == 1


def test_a_vocabulary_without_room_for_the_bytes_is_refused_with_both_numbers():
    with pytest.raises(TokenizerError, match=r"at least 258 tokens \(256 bytes and 2 special tokens\), but got 257"):
        train_byte_pairs_by_hand(["text"], 257, [END, "<|pad|>"])


def test_a_file_gives_what_its_text_gives_with_its_line_ends(tmp_path, manual):
    text = manual[:20_000].replace("\n", "\r\n")
    file = tmp_path / "text.txt"
    file.write_bytes(text.encode())
    assert train_byte_pairs_by_hand(file, 300, [END]) == train_byte_pairs_by_hand([text], 300, [END])
    assert train_byte_pairs_by_hand(str(file), 300, [END]) == train_byte_pairs_by_hand([text], 300, [END])


def test_a_file_that_is_missing_or_not_utf8_is_refused(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        train_byte_pairs_by_hand(tmp_path / "none.txt", 300, [])
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 au lait")
    with pytest.raises(DataError, match=r"UTF-8 text in .*latin.txt"):
        train_byte_pairs_by_hand(tmp_path / "latin.txt", 300, [])


@given(st.text(st.sampled_from("abc"), max_size=30), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_a_word_is_written_as_by_looking_for_the_first_learned_pair_each_time(word, picks):
    tokens = [b"a", b"b", b"c"]
    ranks = {}
    for left, right in picks:
        pair = (tokens[left % len(tokens)], tokens[right % len(tokens)])
        if pair[0] + pair[1] not in tokens:
            ranks[pair] = len(ranks)
            tokens.append(pair[0] + pair[1])
    expected = [bytes([byte]) for byte in word.encode()]
    while True:
        known = [pair for pair in pairwise(expected) if pair in ranks]
        if not known:
            break
        expected = join_everywhere(expected, min(known, key=ranks.__getitem__))
    assert merge_word(word.encode(), ranks) == expected


def test_ids_equal_tiktokens_on_a_book(tokenizer, oracle, manual):
    assert tokenizer.encode(manual) == oracle.encode_ordinary(manual)


@pytest.mark.parametrize("text", AWKWARD, ids=lambda text: ascii(text)[:24])
def test_ids_equal_tiktokens_on_awkward_texts(tokenizer, oracle, text):
    ids = tokenizer.encode(text)
    assert ids == oracle.encode(text, allowed_special="all")
    assert tokenizer.decode(ids) == text


@pytest.mark.real
def test_gpt2s_ids_equal_tiktokens_whole_and_line_by_line(manual):
    vocab, merges = gpt2_vocabulary()
    gpt2, expected = HandTokenizer(vocab, merges, [END]), gpt2_of_tiktoken(vocab)
    text = manual + END.join(AWKWARD)
    ids = expected.encode(text, allowed_special="all")
    assert gpt2.encode(text) == ids
    assert list(gpt2.encode_iterable(text.splitlines(keepends=True))) == ids
    assert gpt2.decode(ids) == text


@given(text=st.text(st.characters(exclude_categories=["Cs", "Cn"])))
def test_ids_equal_tiktokens_on_any_text(tokenizer, oracle, text):
    assert tokenizer.encode(text) == oracle.encode(text, allowed_special="all")
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_ids_equal_the_librarys(tokenizer, learned, manual):
    library = byte_pair_tokenizer(*learned, [END])
    assert library.encode(manual).tolist() == tokenizer.encode(manual)


@given(text=st.text(st.sampled_from("ab' ls\n<|endoftxrdh>癖"), max_size=40), cuts=st.lists(st.integers(0, 40)))
def test_a_stream_has_the_ids_of_the_whole_wherever_it_is_cut(tokenizer, text, cuts):
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = (text[start:end] for start, end in pairwise(places))
    assert list(tokenizer.encode_iterable(pieces)) == tokenizer.encode(text)


def test_the_lines_of_a_file_have_the_ids_of_the_whole(tokenizer, oracle, tmp_path, manual):
    text = manual[:50_000].replace("\n\n\n", f"\n\n{END}\n\n\n")
    (tmp_path / "book.txt").write_text(text, encoding="utf-8")
    with open(tmp_path / "book.txt", encoding="utf-8") as lines:
        assert list(tokenizer.encode_iterable(lines)) == oracle.encode(text, allowed_special="all")


def test_ids_come_while_the_stream_goes_on(tokenizer):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield "to be or not to be\n"

    assert len(list(islice(tokenizer.encode_iterable(endless()), 4))) == 4
    assert len(taken) == 1


def test_a_stream_needs_less_than_a_megabyte(learned):
    tokenizer = HandTokenizer(*learned, [END])
    generator = random.Random(1)
    lines = ("".join(generator.choices("etaoin shrdlu ", k=80)) + "\n" for _ in range(1_500))
    next(tokenizer.encode_iterable(["a b"]))  # the split pattern is made on first use
    tracemalloc.start()
    num_ids = sum(1 for _ in tokenizer.encode_iterable(lines))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_ids > 30_000
    assert peak_bytes < 1_000_000


def test_the_longest_of_overlapping_special_tokens_wins(learned):
    tokenizer = HandTokenizer(*learned, [END, END + END])
    ids = tokenizer.encode(f"Hello{END}{END} you{END}")
    assert [tokenizer.decode([token_id]) for token_id in ids].count(END + END) == 1
    assert [tokenizer.decode([token_id]) for token_id in ids].count(END) == 1
    assert tokenizer.decode(ids) == f"Hello{END}{END} you{END}"


def test_a_special_token_that_is_not_in_the_vocabulary_gets_the_next_id(learned):
    vocab, merges = learned
    assert HandTokenizer(vocab, merges, ["<|new|>"]).encode("<|new|>") == [1000]
    assert len(vocab) == 1000


def test_bytes_that_are_no_character_are_replaced(tokenizer):
    ids = tokenizer.encode("癖")
    assert tokenizer.decode(ids[:-1]) == "\ufffd"


def test_ids_and_bytes_that_are_not_in_the_vocabulary_are_named(tokenizer):
    with pytest.raises(TokenizerError, match="id 1000"):
        tokenizer.decode([1000])
    with pytest.raises(TokenizerError, match="without b'b', which 'abc' needs"):
        HandTokenizer({0: b"a"}, []).encode("abc")
    with pytest.raises(TokenizerError, match=r"U\+D800"):
        tokenizer.encode("\ud800")


def test_a_word_of_a_hundred_thousand_letters_is_written_in_one_go(tokenizer):
    word = "".join(random.Random(2).choices("abcdefghij", k=100_000))
    assert tokenizer.decode(tokenizer.encode(word)) == word
