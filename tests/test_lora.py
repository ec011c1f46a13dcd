"""Low-rank factors: nothing changes at first, only they are trained, and merged they do what they did beside."""

import copy

import pytest
import torch

from pellucid import presets
from pellucid.errors import ConfigError, ModelFileError
from pellucid.lora import (
    AdaptedLinear,
    adapted_maps,
    add_factors,
    is_adapted,
    load_trained,
    merged,
    merged_state,
    trained_state,
)
from pellucid.nn import TransformerLM
from tests.train.small_run import small_model

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])
SHAPES = [{}, {"num_kv_heads": 1}, {"tie_embeddings": True}]


def with_filled_factors(**how):
    model = add_factors(small_model(**how.pop("model", {})), rank=2, **how).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, module in adapted_maps(model):
            for factor in module.factors.parameters():
                factor.normal_(0.0, 0.3, generator=generator)
    return model


@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_at_first_nothing_is_changed(changes):
    model = small_model(**changes).eval()
    before = model(IDS)
    assert torch.equal(add_factors(model, rank=3)(IDS), before)


@pytest.mark.parametrize("changes", SHAPES, ids=str)
@pytest.mark.parametrize("targets", [(), ("query",), ("value", "down")], ids=str)
def test_merged_it_is_the_plain_model_that_does_the_same(changes, targets):
    model = with_filled_factors(model=changes, targets=targets, alpha=3.0)
    plain = TransformerLM(model.config).eval()
    plain.load_state_dict(merged_state(model, trained_state(model)))
    with torch.no_grad():
        beside = model(IDS)
        torch.testing.assert_close(plain(IDS), beside, rtol=1e-4, atol=1e-4)
        assert not torch.allclose(small_model(**changes).eval()(IDS), beside, atol=1e-2)
        with merged(model):
            assert torch.equal(model(IDS), plain(IDS))
        assert torch.equal(model(IDS), beside)


def test_each_of_query_key_and_value_has_its_own_rows():
    model = with_filled_factors(model={"num_kv_heads": 1}, targets=("key",))
    before, after = small_model(num_kv_heads=1).state_dict(), merged_state(model, trained_state(model))
    name = "blocks.0.attention.query_key_value.weight"
    changed = (before[name] != after[name]).any(dim=1)
    assert changed.tolist() == [False] * 32 + [True] * 16 + [False] * 16


def test_only_factors_get_gradients_and_every_factor_does():
    model = with_filled_factors()
    model(IDS).square().sum().backward()
    with_gradient = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert with_gradient == set(trained_state(model))
    assert all(".factors." in name for name in with_gradient)
    assert len(with_gradient) == 7 * 2


def test_scaling_is_alpha_over_rank_and_alpha_twice_the_rank():
    assert {module.scaling for _, module in adapted_maps(add_factors(small_model(), rank=4))} == {2.0}
    assert {module.scaling for _, module in adapted_maps(add_factors(small_model(), rank=4, alpha=2.0))} == {0.5}


def test_the_vocabulary_is_trained_whole_where_it_is_new():
    model = add_factors(small_model(tie_embeddings=True), rank=2, train_vocabulary=True)
    assert {"token_embedding.weight", "lm_head.weight"} <= set(trained_state(model))
    assert model.lm_head.weight is model.token_embedding.weight


def test_what_was_trained_comes_back():
    model = with_filled_factors(train_vocabulary=True)
    kept = {name: tensor.detach().clone() for name, tensor in trained_state(model).items()}
    other = add_factors(small_model(), rank=2, train_vocabulary=True, seed=5).eval()
    load_trained(other, kept, "here")
    assert torch.equal(other(IDS), model(IDS))
    with pytest.raises(ModelFileError, match="a part of it"):
        load_trained(other, dict(list(kept.items())[:-1]), "here")
    with pytest.raises(ModelFileError, match="another's odd"):
        load_trained(other, kept | {"odd": torch.ones(1)}, "here")


def test_the_same_seed_draws_the_same_and_leaves_the_global_stream_alone():
    models = small_model(), small_model()
    state = torch.get_rng_state()
    one, other = (trained_state(add_factors(model, rank=2, seed=3)) for model in models)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_rank_above_the_smallest_map_and_a_map_that_is_not_there_are_refused():
    with pytest.raises(ConfigError, match=r"a rank of at most 16, .* --lora 17"):
        add_factors(small_model(num_kv_heads=1), rank=17)
    plain = TransformerLM(presets.gpt2(vocab_size=9, d_model=32, num_layers=1, num_heads=2, context_length=8))
    with pytest.raises(ConfigError, match="but got gate"):
        add_factors(plain, rank=2, targets=("gate", "up"))


def test_a_plain_model_has_none_and_the_block_that_merges_changes_nothing():
    model = small_model().eval()
    before = copy.deepcopy(model.state_dict())
    assert not is_adapted(model)
    with merged(model):
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_biases_stay_and_are_added_once():
    model = small_model(qkv_bias=True)
    expected = model.blocks[0].attention.query_key_value(torch.ones(1, 32))
    add_factors(model, rank=2)
    adapted = model.blocks[0].attention.query_key_value
    assert isinstance(adapted, AdaptedLinear)
    assert torch.equal(adapted(torch.ones(1, 32)), expected)
