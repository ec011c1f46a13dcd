import json

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from pellucid.text.definition import (
    bytes_of_tokens,
    find_end_of_text,
    fingerprint_of,
    kind_of,
    may_be_cut,
)
from pellucid.text.splitting import GPT2_SPLIT, QWEN35_SPLIT

EMPTY_BPE = models.BPE(vocab={"a": 0}, merges=[])


def definition(model, pre_tokenizer=None, decoder=None, normalizer=None, added=()):
    built = Tokenizer(model)
    if pre_tokenizer is not None:
        built.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        built.decoder = decoder
    if normalizer is not None:
        built.normalizer = normalizer
    built.add_tokens(list(added))
    return json.loads(built.to_str())


def test_gpt2s_own_file_is_byte_level_and_may_be_cut():
    gpt2 = definition(EMPTY_BPE, pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel())
    assert kind_of(gpt2) == "bpe"
    assert may_be_cut(gpt2)


@pytest.mark.parametrize(("rule", "may"), [(GPT2_SPLIT, True), (QWEN35_SPLIT, True), (r"\S+", False)])
def test_a_text_may_be_cut_for_the_rules_that_are_known(rule, may):
    steps = [
        pre_tokenizers.Split(Regex(rule), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    assert may_be_cut(definition(EMPTY_BPE, pre_tokenizers.Sequence(steps), decoders.ByteLevel())) == may
    assert not may_be_cut(definition(EMPTY_BPE, pre_tokenizers.Sequence(steps[::-1]), decoders.ByteLevel()))


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)},
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=False), "normalizer": normalizers.NFC()},
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=False), "added": ["two words"]},
        {"pre_tokenizer": pre_tokenizers.Whitespace()},
        {},
    ],
)
def test_a_tokenizer_whose_tokens_may_cross_a_cut_is_not_cut(parts):
    assert not may_be_cut(definition(EMPTY_BPE, decoder=decoders.ByteLevel(), **parts))


def test_a_sentencepiece_style_file_is_of_another_kind():
    llama = definition(
        models.BPE(vocab={"a": 0}, merges=[], byte_fallback=True),
        decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
    )
    assert kind_of(llama) == "other"


def test_a_word_level_vocabulary_of_words_is_not_one_of_characters():
    assert kind_of(definition(models.WordLevel({"word": 0}, "word"), pre_tokenizers.Whitespace())) == "other"


def test_bytes_of_sentencepiece_tokens_are_what_they_add_in_a_text():
    vocab = {"▁the": 0, "<0xE7>": 1, "癖": 2, "<0xZZ>": 3}
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    table = bytes_of_tokens(definition(models.BPE(vocab=vocab, merges=[]), decoder=decoder), vocab)
    assert table == [b" the", b"\xe7", "癖".encode(), b"<0xZZ>"]


def test_added_tokens_are_their_own_text_not_a_spelling_of_bytes():
    parts = definition(EMPTY_BPE, pre_tokenizers.ByteLevel(), decoders.ByteLevel(), added=["Ġé"])
    assert bytes_of_tokens(parts, {"a": 0, "Ġé": 1}) == [b"a", "Ġé".encode()]


def test_ids_without_a_token_stand_for_nothing():
    assert bytes_of_tokens(definition(EMPTY_BPE), {"a": 2}) == [b"", b"", b"a"]


def test_the_fingerprint_tells_order_of_merges_but_not_layout():
    one = {"model": {"merges": [["a", "b"], ["c", "d"]], "type": "BPE"}}
    other_order = {"model": {"type": "BPE", "merges": [["a", "b"], ["c", "d"]]}}
    assert fingerprint_of(one) == fingerprint_of(json.loads(json.dumps(other_order, indent=4)))
    assert fingerprint_of(one) != fingerprint_of({"model": {"merges": [["c", "d"], ["a", "b"]], "type": "BPE"}})


@pytest.mark.parametrize(
    ("tokens", "asked", "configured", "found"),
    [
        (["</s>", "<|endoftext|>"], None, None, "<|endoftext|>"),
        (["</s>", "<|turn|>"], None, "<|turn|>", "</s>"),
        (["a", "<|stop|>"], None, "<|stop|>", "<|stop|>"),
        (["</s>", "<|stop|>"], "<|stop|>", None, "<|stop|>"),
        (["</s>"], "<|stop|>", None, None),
        (["a"], None, "<|stop|>", None),
        (["a"], None, None, None),
    ],
)
def test_the_end_of_text_is_the_one_asked_for_then_a_known_one_then_the_configured(tokens, asked, configured, found):
    assert find_end_of_text(tokens, asked, configured) == found
