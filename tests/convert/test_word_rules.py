import json

import pytest

from pellucid.convert.gguf_vocabulary import QWEN2_SPLIT, RULES, Rule
from pellucid.convert.word_rules import name_of, words_of
from pellucid.text import GPT2_SPLIT, QWEN35_SPLIT, TextTokenizer
from tests.convert.outgoing_models import byte_pairs, letters


def test_what_is_learned_here_has_a_name():
    assert words_of(byte_pairs()) == Rule((QWEN35_SPLIT,))
    assert name_of(words_of(byte_pairs())) == "qwen35"


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_found_by_a_name_that_means_the_same(name):
    assert RULES[name_of(RULES[name])] == RULES[name]


@pytest.mark.parametrize(
    ("splits", "name"),
    [
        ((r"\p{N}", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"), "smollm"),
        ((r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",), "gpt-2"),
        ((r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+",), None),
        ((r"\p{N}{1,2}", GPT2_SPLIT), None),
    ],
)
def test_a_rule_is_known_by_what_it_does(splits, name):
    assert name_of(Rule(splits)) == name


def definition(**steps):
    return TextTokenizer(json.dumps({**json.loads(byte_pairs().definition), **steps}))


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DIGITS = {"type": "Digits", "individual_digits": True}


def test_steps_that_are_no_expression_are_read():
    assert words_of(definition(pre_tokenizer=BYTE_LEVEL)) == Rule((GPT2_SPLIT,))
    steps = {"type": "Sequence", "pretokenizers": [DIGITS, BYTE_LEVEL]}
    assert name_of(words_of(definition(pre_tokenizer=steps))) == "smollm"
    qwen2 = {"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": False}
    steps = {"type": "Sequence", "pretokenizers": [qwen2, {**BYTE_LEVEL, "use_regex": False}]}
    assert name_of(words_of(definition(pre_tokenizer=steps, normalizer={"type": "NFC"}))) == "qwen2"


@pytest.mark.parametrize(
    "steps",
    [
        {"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True}},
        {"normalizer": {"type": "NFKC"}},
        {"pre_tokenizer": {"type": "Whitespace"}},
    ],
)
def test_what_no_rule_tells_is_none(steps):
    assert words_of(definition(**steps)) is None
    assert words_of(letters()) is None
