import pytest
import torch

from pellucid.errors import TokenizerError
from pellucid.text import character_tokenizer
from pellucid.train.sample import Sampler
from tests.train.small_run import small_model, small_text


@pytest.fixture
def tokenizer():
    return character_tokenizer([small_text()])


@pytest.fixture
def model(tokenizer):
    return small_model(vocab_size=tokenizer.vocab_size, dropout=0.5)


def test_the_same_model_writes_the_same_text_every_time(tokenizer, model):
    sampler = Sampler(tokenizer, "the ", seed=1)
    assert sampler(model, 10) == sampler(model, 10)
    assert Sampler(tokenizer, "the ", seed=2)(model, 10) != sampler(model, 10)


def test_taking_a_sample_changes_nothing_in_the_run(tokenizer, model):
    model.train()
    state, weights = torch.get_rng_state(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    Sampler(tokenizer, "", seed=1)(model, 5)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


def test_it_writes_as_many_tokens_as_asked_past_the_context_too(tokenizer, model):
    assert len(tokenizer.encode(Sampler(tokenizer, "", seed=1)(model, 40))) <= 40  # an end of text is no character
    assert model.config.context_length < 40


def test_of_a_prompt_longer_than_the_context_the_end_is_read(tokenizer, model):
    assert Sampler(tokenizer, "the cat " * 20, seed=1)(model, 5)


def test_a_prompt_that_the_tokenizer_cannot_write_is_refused_by_its_characters(tokenizer, model):
    with pytest.raises(TokenizerError, match="Ω"):
        Sampler(tokenizer, "the Ω", seed=1)(model)
