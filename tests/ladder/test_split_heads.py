import pytest
import torch
from torch import nn
from torch.nn import functional

from pellucid.errors import ConfigError, ShapeError
from pellucid.ladder import CausalAttention, MaskedMultiHeadAttention, SplitHeads
from pellucid.model_config import ModelConfig
from pellucid.nn import CausalMultiHeadAttention

ROLES = ("W_query", "W_key", "W_value")
# Raschka 2024, section 3.6.2: seed 123, three features in, two heads of one feature.
CONTEXTS = [
    [0.3190, 0.4858],
    [0.2943, 0.3897],
    [0.2856, 0.3593],
    [0.2693, 0.3873],
    [0.2639, 0.3928],
    [0.2575, 0.4028],
]


@pytest.fixture
def split(with_random_weights) -> SplitHeads:
    """Three heads of four features, without dropout."""
    return with_random_weights(SplitHeads(12, 12, 64, 0.0, num_heads=3)).eval()


def test_contexts_are_the_textbooks(batch):
    torch.manual_seed(123)
    contexts = SplitHeads(3, 2, 6, 0.0, num_heads=2)(batch)
    torch.testing.assert_close(contexts, torch.tensor([CONTEXTS, CONTEXTS]), atol=5.1e-5, rtol=0)


@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("seed", [123, 789])
def test_every_way_of_drawing_gives_the_textbooks_function(draw, new_layers, seed, qkv_bias):
    inputs, attention = draw(seed, lambda: SplitHeads(3, 4, 6, 0.0, 2, qkv_bias))
    same_inputs, (layers, projection) = draw(seed, lambda: (new_layers(3, 4, qkv_bias), nn.Linear(4, 4)))
    query, key, value = (torch.stack(layer(same_inputs).chunk(2, dim=-1), dim=1) for layer in layers)
    heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    expected = projection(torch.cat([heads[:, 0], heads[:, 1]], dim=-1))
    torch.testing.assert_close(attention(inputs), expected)


def test_with_the_heads_matrices_stacked_it_is_the_list_of_heads(with_random_weights):
    listed = with_random_weights(MaskedMultiHeadAttention(12, 4)).eval()
    split = SplitHeads(12, 12, 64, 0.0, num_heads=3).eval()
    for role in ROLES:
        getattr(split, role).weight.data = torch.cat([getattr(head, role).weight for head in listed.heads])
    split.out_proj.load_state_dict(listed.out_proj.state_dict())
    x = torch.randn(2, 10, 12)
    torch.testing.assert_close(split(x), listed(x))


def test_one_head_with_a_projection_that_does_nothing_is_causal_attention(batch):
    split = SplitHeads(3, 2, 6, 0.0, num_heads=1)
    split.out_proj.weight.data = torch.eye(2)
    split.out_proj.bias.data.zero_()
    causal = CausalAttention(3, 2, 6, 0.0)
    causal.load_state_dict(split.state_dict(), strict=False)
    torch.testing.assert_close(split(batch), causal(batch))


@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("length", [1, 10, 64])
def test_with_its_weights_stacked_the_models_attention_is_the_same_function(with_random_weights, qkv_bias, length):
    split = with_random_weights(SplitHeads(12, 12, 64, 0.0, num_heads=3, qkv_bias=qkv_bias))
    config = ModelConfig(
        d_model=12,
        num_heads=3,
        context_length=64,
        positions="none",
        qkv_bias=qkv_bias,
        attention_output_bias=True,
    )
    model = CausalMultiHeadAttention(config)
    layers = [getattr(split, role) for role in ROLES]
    model.query_key_value.weight.data = torch.cat([layer.weight for layer in layers])
    if qkv_bias:
        model.query_key_value.bias.data = torch.cat([layer.bias for layer in layers])
    model.output.load_state_dict(split.out_proj.state_dict())
    x = torch.randn(2, length, 12)
    torch.testing.assert_close(split(x), model(x))


def test_torchs_own_multi_head_attention_is_the_same_function(split):
    theirs = nn.MultiheadAttention(12, 3, bias=True, batch_first=True)
    theirs.in_proj_weight.data = torch.cat([getattr(split, role).weight for role in ROLES])
    theirs.in_proj_bias.data.zero_()
    theirs.out_proj.load_state_dict(split.out_proj.state_dict())
    x = torch.randn(2, 10, 12)
    future = torch.ones(10, 10).triu(1).bool()
    torch.testing.assert_close(split(x), theirs(x, x, x, attn_mask=future, need_weights=False)[0])


def test_dropout_falls_on_the_weights_as_in_the_textbook(with_random_weights):
    split = with_random_weights(SplitHeads(12, 12, 64, 0.5, num_heads=3))
    x = torch.randn(2, 10, 12)
    query, key, value = (getattr(split, role)(x).unflatten(-1, (3, 4)).transpose(1, 2) for role in ROLES)
    scores = (query @ key.transpose(-2, -1)).masked_fill(torch.ones(10, 10).triu(1) == 1, -torch.inf)
    torch.manual_seed(123)
    heads = functional.dropout(torch.softmax(scores / 4**0.5, dim=-1), 0.5) @ value
    expected = split.out_proj(heads.transpose(1, 2).flatten(2))
    torch.manual_seed(123)
    torch.testing.assert_close(split(x), expected)


def test_heads_that_do_not_divide_the_width_are_refused_by_both_numbers():
    with pytest.raises(ConfigError, match="d_out=12 and num_heads=5"):
        SplitHeads(12, 12, 64, 0.0, num_heads=5)


def test_a_longer_sequence_than_the_mask_is_refused_by_both_numbers(split):
    with pytest.raises(ShapeError, match=r"at most 64 positions \(context_length=64\), but got 65 positions"):
        split(torch.zeros(1, 65, 12))


def test_any_leading_axes_give_what_each_sequence_gives_alone(split):
    x = torch.randn(2, 3, 5, 12)
    expected = torch.stack([split(x[0]), split(x[1])])
    torch.testing.assert_close(split(x), expected)
    torch.testing.assert_close(split(x[0, 0]), expected[0, 0])


def test_the_future_cannot_leak(assert_the_future_cannot_leak, split):
    assert_the_future_cannot_leak(split, torch.randn(2, 10, 12))


def test_dropout_sleeps_after_eval(assert_eval_draws_nothing):
    assert_eval_draws_nothing(SplitHeads(12, 12, 64, 0.5, num_heads=3), torch.randn(2, 10, 12))
