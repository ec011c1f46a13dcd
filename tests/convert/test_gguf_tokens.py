import json
from dataclasses import replace

import pytest

from pellucid.convert.awkward import AWKWARD, encodable
from pellucid.convert.gguf_tokens import ADDED, BYTE, PLAIN, SPECIAL, UNKNOWN, UNUSED, describe_tokens
from pellucid.convert.gguf_vocabulary import read_vocabulary
from pellucid.errors import ModelFileError
from pellucid.text import ListedVocabulary, TextTokenizer, listed_pieces
from tests.convert.outgoing_models import SHAPES, TEXT, byte_pairs, letters, made, outgoing

CHATTY = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"


@pytest.fixture(scope="module")
def model():
    return made(SHAPES["qwen3"])


def told(entries):
    return {key.removeprefix("tokenizer.ggml."): value for key, value in entries.items()}


def chatting():
    """Byte pairs with two tokens for turns, and one that is found as it stands."""
    definition = json.loads(byte_pairs().definition)
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    names = {"<|im_start|>": True, "<|im_end|>": True, "<tool>": False}
    for number, (name, special) in enumerate(names.items(), 280):
        definition["added_tokens"].append({"id": number, "content": name, **plain, "special": special})
    return TextTokenizer(json.dumps(definition))


def test_what_begins_and_ends_a_text_is_always_told(model):
    said = told(describe_tokens(outgoing(model)))
    assert said["bos_token_id"] == said["eos_token_id"] == 0
    assert said["add_bos_token"] is said["add_eos_token"] is False
    assert (said["model"], said["pre"]) == ("gpt2", "qwen35")
    assert said["token_type"] == [SPECIAL] + [PLAIN] * 279
    assert "eot_token_id" not in said


def test_the_end_of_a_turn_and_the_template_are_told():
    model = made(replace(SHAPES["qwen3"], vocab_size=283))
    out = outgoing(model, chatting(), end_ids=frozenset({281}), chat_template=CHATTY)
    said = told(describe_tokens(out))
    assert (said["eos_token_id"], said["eot_token_id"], said["eos_token_ids"]) == (0, 281, [0, 281])
    assert said["token_type"][280:] == [SPECIAL, SPECIAL, ADDED]
    assert said["tokenizer.chat_template"] == CHATTY


def test_every_row_of_the_embedding_has_a_token():
    model = made(replace(SHAPES["qwen3"], vocab_size=290, num_unused_ids=10))
    said = told(describe_tokens(outgoing(model)))
    assert said["tokens"][280:282] == ["[PAD280]", "[PAD281]"]
    assert said["token_type"][280:] == [UNUSED] * 10


def test_read_again_it_is_the_same_tokenizer(model):
    tokenizer = read_vocabulary(describe_tokens(outgoing(model)), "the file")
    for text in AWKWARD:
        assert tokenizer.encode(text).tolist() == byte_pairs().encode(text).tolist()


def pieces(space_before):
    """A vocabulary of SentencePiece's kind."""
    bytes_of_it = [f"<0x{byte:02X}>" for byte in range(256)]
    words = ["▁", *"onceupati", "on", "▁on", "ti", "me", "▁ti", "▁time", "m"]
    tokens = ["<unk>", "<s>", "</s>", *bytes_of_it, *words]
    kinds = ["unknown", "special", "special", *["byte"] * 256, *["plain"] * len(words)]
    listed = ListedVocabulary(tokens=tokens, kinds=kinds, begin="<s>")
    scores = [0.0] * (len(tokens) - len(words)) + [-float(number) for number in range(len(words))]
    return listed_pieces(listed, scores, space_before=space_before)


@pytest.mark.parametrize("space_before", [True, False])
def test_pieces_are_written_with_scores_in_the_order_of_merges(space_before):
    tokenizer = pieces(space_before)
    model = made(replace(SHAPES["qwen3"], vocab_size=tokenizer.vocab_size))
    entries = describe_tokens(outgoing(model, tokenizer))
    said = told(entries)
    assert (said["model"], said["add_space_prefix"], said["add_bos_token"], said["bos_token_id"]) == (
        "llama",
        space_before,
        True,
        1,
    )
    assert said["token_type"][:4] == [UNKNOWN, SPECIAL, SPECIAL, BYTE]
    again = read_vocabulary(entries, "the file")
    for text in [TEXT, *encodable(tokenizer)]:
        assert again.encode(text).tolist() == tokenizer.encode(text).tolist(), text
    assert again.beginning_ids == tokenizer.beginning_ids == [1]


def test_characters_are_refused_with_the_reason(model):
    with pytest.raises(ModelFileError, match=r"its tokens are characters: export it to Hugging Face"):
        describe_tokens(outgoing(model, letters()))


def test_an_unknown_rule_is_refused(model):
    definition = json.loads(byte_pairs().definition)
    definition["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\S+|\s+"
    with pytest.raises(ModelFileError, match=r"a rule that llama.cpp does not know"):
        describe_tokens(outgoing(model, TextTokenizer(json.dumps(definition))))
