"""Attention maps: they are the weights that were used, whatever these are."""

import pytest
import torch

from pellucid.errors import ShapeError
from pellucid.inspection.attention_maps import attention_maps, habit
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
SIZES = {"vocab_size": 10, "context_length": 16, "d_model": 64, "num_layers": 3, "num_heads": 8}


def _model(**changes) -> TransformerLM:
    torch.manual_seed(0)
    model = TransformerLM(ModelConfig(**SIZES | changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # small weights attend to all alike, and hide every error
            if parameter.ndim == 2:
                parameter.normal_(std=0.15)
    return model


KINDS = [
    {},
    {"num_kv_heads": 2},
    {"positions": "learned", "norm": "layer", "feed_forward": "gelu"},
    {"window": 3, "layer_pattern": ("local", "global")},
    {"qk_norm": "head", "attention_scale": 0.3},
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_sums_to_one_and_no_token_reads_a_later_one(kind):
    maps = attention_maps(_model(**kind), IDS)
    assert [one.layer for one in maps] == [0, 1, 2]
    for one in maps:
        assert one.weights.shape == (8, len(IDS), len(IDS))
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(8, len(IDS)), atol=1e-5, rtol=0)
        assert one.weights.triu(1).abs().max() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_maps_times_values_are_what_the_layers_attention_gave_by_its_fast_path(kind):
    model = _model(**kind)
    given = []
    for block in model.blocks:
        block.attention.output.register_forward_pre_hook(lambda module, inputs: given.append(inputs[0][0]))
    model(IDS[None])
    fast = list(given)
    for one, attended in zip(attention_maps(model, IDS), fast, strict=True):
        merged = (one.weights @ one.values).transpose(0, 1).flatten(1)
        torch.testing.assert_close(merged, attended, atol=1e-5, rtol=0)


def test_with_maps_the_logits_are_those_of_the_reference_to_the_last_bit_and_of_the_kernel_nearly():
    model = _model(num_kv_heads=2)
    hidden = []
    model.final_norm.register_forward_hook(lambda module, inputs, output: hidden.append(output))
    attention_maps(model, IDS)
    with_maps = model.logits(hidden[0])
    torch.testing.assert_close(with_maps, model(IDS[None]), atol=1e-5, rtol=0)
    assert torch.equal(with_maps, model.use_fused_attention(False)(IDS[None]))


def test_a_model_that_looks_ahead_is_shown_looking_ahead(monkeypatch):
    monkeypatch.setattr(
        "pellucid.nn.multi_head.causal_mask", lambda places, num_keys, window: torch.ones(len(places), num_keys) > 0
    )
    assert attention_maps(_model(), IDS)[0].weights.triu(1).max() > 0.01


def test_each_query_head_reads_its_own_groups_keys():
    model = _model(num_kv_heads=2)
    with torch.no_grad():  # value head 0 gives 0 ... 0, value head 1 gives 1 ... 1 of a bias
        first = model.blocks[0].attention
        first.query_key_value.weight[-16:] = 0
        first.query_key_value.weight[-8:] = 1
    values = attention_maps(model, IDS)[0].values
    assert values.shape == (8, len(IDS), 8)
    assert values[:4].abs().max() == 0
    assert values[4:].abs().min() > 0
    assert torch.equal(values[4], values[7])


def test_the_model_is_left_as_it_was():
    model = _model(dropout=0.5).train()
    before = [(block.attention.fused, block.attention.written_out) for block in model.blocks]
    random = torch.random.get_rng_state()
    maps = [attention_maps(model, IDS) for _ in range(2)]
    assert torch.equal(maps[0][2].weights, maps[1][2].weights)
    assert torch.equal(random, torch.random.get_rng_state())
    assert model.training
    assert [(block.attention.fused, block.attention.written_out) for block in model.blocks] == before


def test_a_text_longer_than_the_context_is_refused_and_the_model_still_left_as_it_was():
    model = _model()
    with pytest.raises(ShapeError, match="at most context_length=16 positions"):
        attention_maps(model, torch.arange(17) % 10)
    assert all(block.attention.fused for block in model.blocks)
    assert model(IDS[None]).shape == (1, 8, 10)


def test_a_layer_with_an_attention_of_somebodys_own_is_left_out():
    model = _model()

    class Own(torch.nn.Module):
        window, fused = None, True

        def forward(self, x, **others):
            return x

    model.blocks[1].attention = Own()
    assert [one.layer for one in attention_maps(model, IDS)] == [0, 2]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (torch.eye(5), "itself"),
        (torch.eye(5).roll(-1, dims=1), "the token before"),
        (torch.tensor([[1.0, 0, 0, 0, 0]] * 5), "the first token"),
        (torch.full((5, 5), 0.2), "many"),
        (torch.ones(2, 2), "many"),
    ],
)
def test_the_habit_of_a_head_is_what_it_mostly_reads(weights, said):
    assert habit(weights)[0] == said
