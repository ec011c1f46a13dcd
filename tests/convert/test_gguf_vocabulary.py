import json
from pydoc_data.topics import topics

import pytest
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

from pellucid.convert.gguf_vocabulary import RULES, end_ids, read_vocabulary
from pellucid.errors import ModelFileError, TokenizerError
from pellucid.text import QWEN35_SPLIT, train_byte_pairs
from tests.text.awkward_texts import AWKWARD

TEXTS = [*AWKWARD, "It's 12345.67 + 8_9, ISN'T it?\r\n\r\n  \tvār cafe\u0301 ", "def f(x):\n    return x**2  # ²\n\n"]


def split(rule):
    return pre_tokenizers.Split(Regex(rule), "isolated")


def spelled(*, use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ORIGINALS = {  # as the tokenizer.json of GPT-2, Llama 3, Qwen2, Mistral Nemo and SmolLM2 have it
    "gpt-2": [spelled(use_regex=True)],
    "llama-bpe": [split(LLAMA3), spelled(use_regex=False)],
    "qwen2": [split(LLAMA3.replace("{1,3}", "")), spelled(use_regex=False)],
    "qwen35": [split(QWEN35_SPLIT), spelled(use_regex=False)],
    "tekken": [split(TEKKEN), spelled(use_regex=False)],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), spelled(use_regex=True)],
}


@pytest.fixture(scope="module")
def learned(manual):
    return train_byte_pairs([manual[:200_000]], 700)


@pytest.fixture(scope="module")
def manual():
    return "\n".join(topics.values())


def metadata_of(tokenizer, **more):
    definition = json.loads(tokenizer.definition)
    ids = {**definition["model"]["vocab"], **tokenizer.special_tokens}
    tokens = sorted(ids, key=ids.get)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in tokenizer.special_tokens else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in definition["model"]["merges"]],
        **{f"tokenizer.ggml.{key}": value for key, value in more.items()},
    }


@pytest.mark.parametrize("pre", ORIGINALS)
def test_ids_are_those_of_the_original_tokenizer(learned, pre):
    original = tokenizers.Tokenizer.from_str(learned.definition)
    original.encode_special_tokens = True
    original.pre_tokenizer = pre_tokenizers.Sequence(ORIGINALS[pre])
    original.normalizer = normalizers.NFC() if pre == "qwen2" else None
    if pre in ("llama-bpe", "tekken"):
        original.model.ignore_merges = True
    made = read_vocabulary(metadata_of(learned, pre=pre), "a file")
    for text in TEXTS:
        assert made.encode(text).tolist() == original.encode(text, add_special_tokens=False).ids, text


def test_a_file_that_names_no_rule_gets_the_default(learned):
    definition = read_vocabulary(metadata_of(learned), "a file").definition
    assert definition == read_vocabulary(metadata_of(learned, pre="default"), "a file").definition


def test_default_cuts_signs_and_numbers_by_three():
    rule = pre_tokenizers.Sequence([split(rule) for rule in RULES["default"].splits])
    cut = [word for word, _ in rule.pre_tokenize_str("a+b isn't 12345 \n x")]
    assert cut == ["a", "+", "b", " isn", "'", "t", " ", "123", "45", " \n", " x"]


def test_the_end_of_a_text_is_the_one_the_file_tells(learned):
    metadata = metadata_of(learned, pre="gpt-2", eos_token_id=300)
    metadata["tokenizer.ggml.token_type"] = [3 if number == 300 else 1 for number in range(700)]
    tokens = metadata["tokenizer.ggml.tokens"]
    tokens[tokens.index("<|endoftext|>")] = "something"
    assert read_vocabulary(metadata, "a file").end_of_text_id == 300


def beginning(metadata):
    library = tokenizers.Tokenizer.from_str(read_vocabulary(metadata, "a file").definition)
    with_it, without = (library.encode("ab", add_special_tokens=marked).ids for marked in (True, False))
    return with_it[: len(with_it) - len(without)]


def test_a_text_begins_as_the_file_says_or_as_llama_cpp_does(learned):
    assert beginning(metadata_of(learned, pre="gpt-2", bos_token_id=5)) == []
    assert beginning(metadata_of(learned, pre="gpt-2", bos_token_id=5, add_bos_token=True)) == [5]
    assert beginning(metadata_of(learned, pre="llama-bpe", bos_token_id=5)) == [5]
    assert beginning(metadata_of(learned, pre="tekken", bos_token_id=5)) == [5]
    assert beginning(metadata_of(learned, pre="llama-bpe", bos_token_id=5, add_bos_token=False)) == []
    assert beginning(metadata_of(learned, pre="llama-bpe")) == []


def test_every_end_that_the_file_names_or_that_is_known_ends_a_text(learned):
    metadata = metadata_of(learned, eos_token_id=300, eot_token_id=301, eom_token_id=9999)
    metadata["tokenizer.ggml.tokens"][302] = "<|im_end|>"
    metadata["tokenizer.ggml.merges"] = metadata["tokenizer.ggml.merges"][:20]
    plain = read_vocabulary(metadata, "a file")
    assert end_ids(metadata, plain) == {plain.end_of_text_id, 300, 301}
    metadata["tokenizer.ggml.token_type"][302] = 3
    special = read_vocabulary(metadata, "a file")
    assert end_ids(metadata, special) == {special.end_of_text_id, 300, 301, 302}


def test_pieces_are_read_with_their_scores():
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "</s>", "▁", "a", "b", "ab", "▁ab"],
        "tokenizer.ggml.token_type": [2, 3, 1, 1, 1, 1, 1],
        "tokenizer.ggml.scores": [0.0, 0.0, -9.0, -9.0, -9.0, -1.0, -2.0],
    }
    assert read_vocabulary(metadata, "a file").encode("ab").tolist() == [6]
    metadata["tokenizer.ggml.add_space_prefix"] = False
    assert read_vocabulary(metadata, "a file").encode("ab").tolist() == [5]
    del metadata["tokenizer.ggml.scores"]
    with pytest.raises(ModelFileError, match="a score for each token"):
        read_vocabulary(metadata, "a file")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("tokens", None, "a list of tokens"),
        ("tokens", [1, 2], "a list of tokens"),
        ("model", "bert", "'bert'"),
        ("pre", "new-rule", "'new-rule'"),
        ("pre", ["gpt-2"], "words cut by a known rule"),
        ("token_type", [9] * 700, "kinds of tokens from 1 to 6"),
        ("token_type", [1], "700 tokens and 1 kinds"),
        ("merges", None, "a list of merges"),
        ("merges", ["a"], "merges of two tokens"),
        ("merges", [" a"], "merges of two tokens"),
        ("merges", [5], "merges of two tokens"),
        ("merges", ["\x01 \x02"], "out of vocabulary"),
        ("eos_token_id", 700, "from 0 to 699"),
        ("eos_token_id", "x", "from 0 to 699"),
    ],
)
def test_what_cannot_be_read_is_told(learned, key, value, says):
    with pytest.raises((ModelFileError, TokenizerError), match=says):
        read_vocabulary({**metadata_of(learned), f"tokenizer.ggml.{key}": value}, "a file")
