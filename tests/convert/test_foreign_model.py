"""Somebody else's model, before and after its weights are read."""

import pytest
import torch

from pellucid import presets
from pellucid.convert import FAMILIES, ForeignModel, to_theirs
from pellucid.convert.filling import HeldWeights
from pellucid.errors import TokenizerError
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer

TOKENIZER = character_tokenizer(["to be"])


def opened(vocab_size, tokenizer):
    model = TransformerLM(presets.default(vocab_size=vocab_size, d_model=32, num_heads=4, num_layers=1))
    table = FAMILIES["qwen3"].weights
    weights = HeldWeights(to_theirs(model.state_dict(), table, model.config))
    return ForeignModel(kind="a folder", config=model.config, family=table, weights=weights, tokenizer=tokenizer), model


def test_rows_without_a_token_are_unused():
    foreign, model = opened(64, TOKENIZER)
    assert foreign.config.num_unused_ids == 64 - TOKENIZER.vocab_size
    logits = foreign.model()(torch.tensor([[1, 2]]))
    assert (logits[..., TOKENIZER.vocab_size :] == -torch.inf).all()
    assert torch.equal(foreign.tensors()["token_embedding.weight"], model.token_embedding.weight)


def test_a_tokenizer_with_more_tokens_than_rows_is_refused():
    with pytest.raises(TokenizerError, match=f"at most {TOKENIZER.vocab_size - 1} ids"):
        opened(TOKENIZER.vocab_size - 1, TOKENIZER)


def test_one_without_a_tokenizer_has_a_model_and_says_what_it_lacks():
    foreign, model = opened(64, None)
    ids = torch.tensor([[1, 2]])
    assert torch.equal(foreign.model()(ids), model(ids))
    with pytest.raises(TokenizerError, match=r"a tokenizer beside a folder.*none.*tokenizer\.json"):
        foreign.required_tokenizer()
