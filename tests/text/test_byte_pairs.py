import json
import os
import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
import tiktoken
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.errors import TokenizerError
from pellucid.text import QWEN35_SPLIT, byte_pair_tokenizer, load_tokenizer, train_byte_pairs
from pellucid.text.byte_pairs import EvenSample, first_tokens, trainable_pieces
from tests.text.awkward_texts import AWKWARD
from tests.text.gpt2 import gpt2_of_tiktoken, gpt2_vocabulary

whole_text = st.text(st.characters(exclude_categories=["Cs"]))


def lines_to_compare(manual):
    """Some 8,000 lines of prose, code, signs, and scripts the vocabulary was not learned from."""
    generator = random.Random(15)
    scripts = [range(0x4E00, 0x9FFF), range(0xAC00, 0xD7A3), range(0x600, 0x6FF), range(0xE01, 0xE5B)]
    emoji = [chr(code) for code in range(0x1F300, 0x1F700)] + ["\u200d", "\ufe0f", "🏽"]
    signs = [*" .,;:!?'\"()[]{}<>|/\\-_=+*&^%$#@~`0123456789abcXYZ\t", "  ", "'s", "'ll"]
    lines = manual.splitlines(keepends=True) + [f"{a}\n{b}" for a, b in pairwise(AWKWARD)]
    for _ in range(500):
        lines.append("".join(chr(code) for code in generator.choices(generator.choice(scripts), k=20)))
        lines.append("".join(generator.choices(emoji, k=12)))
        lines.append("".join(generator.choices(signs, k=40)))
    return lines


def assert_same_ids(lines, encode, expected):
    for line in lines:
        assert encode(line) == expected(line), f"first difference in {line!r}"


def test_ids_equal_tiktokens(byte_pairs, manual):
    ids = {byte_pairs.token_bytes(token_id): token_id for token_id in range(1, byte_pairs.vocab_size)}
    oracle = tiktoken.Encoding("ours", pat_str=QWEN35_SPLIT, mergeable_ranks=ids, special_tokens={})
    lines = lines_to_compare(manual)
    assert len(lines) > 5_000
    assert_same_ids(lines, lambda line: byte_pairs.encode(line).tolist(), oracle.encode_ordinary)


@pytest.mark.real
def test_gpt2s_ids_equal_tiktokens(manual):
    vocab, merges = gpt2_vocabulary()
    tokenizer = byte_pair_tokenizer(vocab, merges)
    end = tokenizer.end_of_text_id
    assert (tokenizer.vocab_size, end) == (50_257, 50_256)
    oracle = gpt2_of_tiktoken(vocab)
    lines = lines_to_compare(manual)
    assert_same_ids(lines, lambda line: tokenizer.encode(line).tolist(), oracle.encode_ordinary)
    assert_same_ids(
        AWKWARD,
        lambda text: tokenizer.encode(text, allow_special=True).tolist(),
        lambda text: oracle.encode(text, allowed_special="all"),
    )


@pytest.mark.parametrize("text", AWKWARD, ids=lambda text: ascii(text)[:24])
def test_awkward_texts_come_back_to_the_letter(byte_pairs, text):
    assert byte_pairs.decode(byte_pairs.encode(text)) == text


@given(text=whole_text)
def test_any_text_comes_back_to_the_letter(byte_pairs, text):
    ids = byte_pairs.encode(text)
    assert byte_pairs.decode(ids) == text
    assert b"".join(map(byte_pairs.token_bytes, ids)) == text.encode()


def test_ten_thousand_strings_of_random_bytes_decode_as_python_decodes_them(byte_pairs):
    generator = random.Random(14)
    of_byte = {byte_pairs.token_bytes(token_id): token_id for token_id in range(byte_pairs.vocab_size)}
    for _ in range(10_000):
        token = generator.randbytes(generator.randint(0, 12))
        ids = [of_byte[bytes([byte])] for byte in token]
        text = token.decode("utf-8", "replace")
        assert byte_pairs.decode(ids) == text
        assert byte_pairs.decode(byte_pairs.encode(text)) == text


@given(ids=st.lists(st.integers(1, 1023)))
def test_ids_in_any_order_decode_as_the_library_decodes_them(byte_pairs, ids):
    library = tokenizers.Tokenizer.from_str(byte_pairs.definition)
    assert byte_pairs.decode(ids) == library.decode(ids)


@pytest.mark.parametrize("vocab_size", [257, 258, 300, 512, 1000])
def test_bytes_specials_and_merges_add_up_to_the_vocabulary_asked_for(manual, vocab_size):
    tokenizer = train_byte_pairs([manual[:100_000]], vocab_size)
    merges = json.loads(tokenizer.definition)["model"]["merges"]
    assert tokenizer.vocab_size == vocab_size == 256 + 1 + len(merges)
    assert len({tokenizer.token_bytes(token_id) for token_id in range(vocab_size)}) == vocab_size


@pytest.mark.parametrize("vocab_size", [257, 258, 300, 512, 1000])
def test_the_first_tokens_of_a_large_vocabulary_are_the_small_one(manual, vocab_size):
    largest = train_byte_pairs([manual[:100_000]], 1000)
    assert first_tokens(largest, vocab_size).definition == train_byte_pairs([manual[:100_000]], vocab_size).definition


@given(text=st.text("ab c", max_size=60), vocab_size=st.integers(257, 275))
def test_the_first_tokens_are_the_same_in_texts_of_few_letters(text, vocab_size):
    largest = train_byte_pairs([text], 275)
    assert first_tokens(largest, vocab_size).definition == train_byte_pairs([text], vocab_size).definition


def test_a_vocabulary_that_is_no_larger_is_given_back(byte_pairs):
    assert first_tokens(byte_pairs, 1024) is first_tokens(byte_pairs, 9999) is byte_pairs
    with pytest.raises(TokenizerError, match="at least 257"):
        first_tokens(byte_pairs, 256)


@pytest.mark.parametrize("vocab_size", [-1, 0, 1, 255, 256])
def test_a_vocabulary_without_room_for_the_bytes_is_refused_with_both_numbers(vocab_size):
    with pytest.raises(TokenizerError, match=rf"at least 257 tokens .*but got {vocab_size}:"):
        train_byte_pairs(["text"], vocab_size)


def test_a_text_too_small_for_the_vocabulary_tells_the_number_reached():
    told = []
    tokenizer = train_byte_pairs(["banana bandana"], 1024, on_progress=told.append)
    assert tokenizer.vocab_size == 260  # b·an·an·a and b·an·d·an·a: "an", "ana", "ban"; no other pair occurs twice
    assert str(told[-1]) == (
        "260 tokens learned, not the 1,024 asked for: no pair is left that occurs 2 times in 14 characters; "
        "the model uses 260"
    )


def test_a_text_alone_is_not_taken_for_a_list_of_letters(byte_pairs, manual):
    assert train_byte_pairs(manual, 1024).fingerprint == byte_pairs.fingerprint


def test_progress_is_told_in_sentences():
    told = []
    train_byte_pairs(["to be or not " * 9, "to be " * 9], 260, on_progress=told.append)
    assert [str(progress) for progress in told] == [
        "reading text for a vocabulary: 117 characters",
        "reading text for a vocabulary: 171 characters",
        "learning a vocabulary of 260 tokens from 171 characters",
        "260 tokens learned from 171 characters",
    ]


def test_of_a_large_text_an_even_sample_is_taken_and_told():
    told = []
    text = ("early " * 50_000, "middle " * 50_000, "later " * 50_000)
    tokenizer = train_byte_pairs(text, 275, sample_bytes=200_000, on_progress=told.append)
    assert 100_000 <= told[-1].characters_used <= 200_000
    assert "taken evenly from all 950,000" in str(told[-1])
    for word in (" early", " middle", " later"):
        assert tokenizer.encode(word).size == 1


@settings(max_examples=20)
@given(st.integers(1, 8), st.integers(400_000, 600_000), st.booleans())
def test_no_stretch_of_a_text_is_left_out_of_a_sample(number, length, with_spaces):
    sample = EvenSample(2_000_000)
    for part in range(number):
        for piece in trainable_pieces((chr(0x4E00 + part) * 7 + " " * with_spaces) * (length // 8)):
            sample.add(piece)
    shares = Counter(piece[0 if piece[0] != " " else 1] for piece in sample.pieces)
    assert len(shares) == number
    assert max(shares.values()) <= 2 * min(shares.values())


def test_no_merge_crosses_text_that_spells_the_end_of_text():
    tokenizer = train_byte_pairs(["wow!<|endoftext|>!wow " * 50], 300)
    tokens = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
    assert b"wow" in tokens
    assert not [token for token in tokens if b"!<" in token or b">!" in token or b"endof" in token]


def test_text_that_spells_the_end_of_text_stays_text_unless_asked_otherwise(byte_pairs):
    text = "one<|endoftext|>two"
    assert byte_pairs.end_of_text_id not in byte_pairs.encode(text)
    assert byte_pairs.decode(byte_pairs.encode(text)) == text
    one_id = byte_pairs.encode(text, allow_special=True)
    assert one_id.tolist() == [*byte_pairs.encode("one"), byte_pairs.end_of_text_id, *byte_pairs.encode("two")]
    assert byte_pairs.decode(one_id) == "onetwo"
    assert byte_pairs.decode(one_id, show_special=True) == text


def test_the_longest_of_overlapping_special_tokens_wins():
    vocab = {byte: bytes([byte]) for byte in range(256)}
    tokenizer = byte_pair_tokenizer(vocab, [], ["<|endoftext|>", "<|a|>", "<|a|><|a|>"])
    assert tokenizer.encode("<|a|><|a|><|a|>", allow_special=True).tolist() == [258, 257]
    assert tokenizer.encode("<|a|><|a|><|a|>").tolist() == list(b"<|a|><|a|><|a|>")


def test_a_text_without_white_space_is_learned_from_in_words_of_256_bytes():
    tokenizer = train_byte_pairs(["癖" * 400_000 + "x" * 400_000], 2048)
    longest = max(len(tokenizer.token_bytes(token_id)) for token_id in range(tokenizer.vocab_size))
    assert longest <= 256
    assert "{256}" not in tokenizer.definition  # cut for training only
    assert tokenizer.decode(tokenizer.encode("癖" * 1000)) == "癖" * 1000


def test_learning_twice_gives_the_same_tokenizer_on_any_number_of_threads(byte_pairs, manual):
    assert train_byte_pairs([manual], 1024).fingerprint == byte_pairs.fingerprint
    program = (
        "from pydoc_data.topics import topics; from pellucid.text import train_byte_pairs\n"
        "print(train_byte_pairs(['\\n'.join(topics.values())], 1024).fingerprint)"
    )
    environment = os.environ | {"RAYON_NUM_THREADS": "1"}
    alone = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert alone.stdout.strip() == byte_pairs.fingerprint


def test_half_a_character_in_the_text_is_refused():
    with pytest.raises(TokenizerError, match=r"U\+DCFF"):
        train_byte_pairs(["half \udcff"], 300)


def test_a_saved_tokenizer_is_the_same(byte_pairs, tmp_path):
    loaded = load_tokenizer(byte_pairs.save(tmp_path / "tokenizer.json"))
    assert (loaded.kind, loaded.fingerprint) == ("bpe", byte_pairs.fingerprint)
    for text in AWKWARD:
        assert loaded.encode(text).tolist() == byte_pairs.encode(text).tolist()


@pytest.mark.real
def test_transformers_reads_the_file_and_gives_the_same_ids(byte_pairs, manual, tmp_path):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(byte_pairs.save(tmp_path)))
    assert_same_ids(
        lines_to_compare(manual)[::7],
        lambda line: byte_pairs.encode(line, allow_special=True).tolist(),
        lambda line: theirs.encode(line, add_special_tokens=False),
    )


def test_a_vocabulary_that_does_not_fit_its_merges_is_refused():
    vocab = {byte: bytes([byte]) for byte in range(256)}
    with pytest.raises(TokenizerError, match="without b'ab'"):
        byte_pair_tokenizer(vocab, [(b"ab", b"c")])
    with pytest.raises(TokenizerError, match="without b'a'"):
        byte_pair_tokenizer({number: token for number, token in vocab.items() if token != b"a"}, [])
