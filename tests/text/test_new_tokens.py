"""New special tokens come behind the old ids, and change nothing of what a text was cut into."""

import json

import pytest
from tokenizers import Tokenizer

from pellucid.errors import TokenizerError
from pellucid.text import TextTokenizer, character_tokenizer, train_byte_pairs, with_new_tokens

TEXTS = ["the cat sat on the mat, the cat <|a|> sat\n"] * 20
NEW = ["<|a|>", "<|b|>"]


@pytest.fixture(params=["characters", "bpe"])
def tokenizer(request):
    return character_tokenizer(TEXTS) if request.param == "characters" else train_byte_pairs(TEXTS, 270)


def test_new_tokens_get_the_next_ids_in_their_order(tokenizer):
    longer = with_new_tokens(tokenizer, NEW)
    assert [longer.special_tokens[name] for name in NEW] == [tokenizer.vocab_size, tokenizer.vocab_size + 1]
    assert (longer.vocab_size, longer.end_of_text_id) == (tokenizer.vocab_size + 2, tokenizer.end_of_text_id)


def test_text_is_cut_as_before_also_where_it_spells_a_new_token(tokenizer):
    longer = with_new_tokens(tokenizer, NEW)
    assert longer.encode(TEXTS[0]).tolist() == tokenizer.encode(TEXTS[0]).tolist()
    assert longer.encode("<|a|>", allow_special=True).tolist() == [tokenizer.vocab_size]
    assert longer.kind == tokenizer.kind


def test_the_library_reads_what_is_saved(tokenizer, tmp_path):
    longer = with_new_tokens(tokenizer, NEW)
    read = Tokenizer.from_file(str(longer.save(tmp_path / "tokenizer.json")))
    assert [read.token_to_id(name) for name in NEW] == [longer.special_tokens[name] for name in NEW]


def test_a_special_token_that_is_there_is_left_as_it_is(tokenizer):
    assert with_new_tokens(tokenizer, [tokenizer.end_of_text]) is tokenizer
    assert with_new_tokens(with_new_tokens(tokenizer, NEW), [*NEW, *NEW]).vocab_size == tokenizer.vocab_size + 2


@pytest.mark.parametrize(("name", "came"), [("", "an empty one"), ("  ", "an empty one"), ("t", "an ordinary token")])
def test_a_name_that_cannot_be_is_refused(tokenizer, name, came):
    with pytest.raises(TokenizerError, match=came):
        with_new_tokens(tokenizer, [name])


def test_a_tokenizer_with_gaps_between_its_ids_is_refused():
    definition = json.loads(character_tokenizer(TEXTS).definition)
    definition["added_tokens"].append(definition["added_tokens"][0] | {"id": 90, "content": "<|far|>", "special": True})
    definition["model"]["vocab"]["<|far|>"] = 90
    with pytest.raises(TokenizerError, match="gaps"):
        with_new_tokens(TextTokenizer(json.dumps(definition)), NEW)
