import pytest
import torch
from torch import nn
from torch.nn import functional

from pellucid.errors import ConfigError, ShapeError
from pellucid.ladder import MaskedMultiHeadAttention, MultiHeadAttentionWrapper


@pytest.fixture
def attention(with_random_weights) -> MaskedMultiHeadAttention:
    return with_random_weights(MaskedMultiHeadAttention(12, 4)).eval()


def test_heads_are_width_over_head_width():
    assert len(MaskedMultiHeadAttention(64, 16).heads) == 4


def test_a_head_width_that_does_not_divide_is_refused_by_both_numbers():
    with pytest.raises(ConfigError, match="d_model=64 and d_head=15"):
        MaskedMultiHeadAttention(64, 15)


def test_with_a_projection_that_does_nothing_it_is_the_wrapper(attention):
    attention.out_proj.weight.data = torch.eye(12)
    attention.out_proj.bias.data.zero_()
    wrapper = MultiHeadAttentionWrapper(12, 4, context_length=64, dropout=0.4, num_heads=3).eval()
    for theirs, ours in zip(wrapper.heads, attention.heads, strict=True):
        theirs.load_state_dict(ours.state_dict(), strict=False)
    x = torch.randn(2, 10, 12)
    torch.testing.assert_close(attention(x), wrapper(x))


def test_the_projection_acts_on_the_joined_heads(attention):
    x = torch.randn(2, 10, 12)
    joined = torch.cat([head(x) for head in attention.heads], dim=-1)
    torch.testing.assert_close(attention(x), joined @ attention.out_proj.weight.T + attention.out_proj.bias)


@pytest.mark.parametrize("seed", [123, 789])
def test_every_way_of_drawing_gives_the_textbooks_function(draw, new_layers, by_kernel, seed):
    inputs, attention = draw(seed, lambda: MaskedMultiHeadAttention(3, 1, 6, dropout=0.0))
    same_inputs, (heads, projection) = draw(seed, lambda: ([new_layers(3, 1) for _ in range(3)], nn.Linear(3, 3)))
    expected = projection(torch.cat([by_kernel(same_inputs, layers, causal=True) for layers in heads], dim=-1))
    torch.testing.assert_close(attention(inputs), expected)


def test_dropout_falls_on_the_weights_and_on_the_projection(attention):
    attention.train()
    x = torch.randn(2, 10, 12)
    torch.manual_seed(123)
    joined = torch.cat([head(x) for head in attention.heads], dim=-1)
    expected = functional.dropout(attention.out_proj(joined), 0.4)
    torch.manual_seed(123)
    torch.testing.assert_close(attention(x), expected)


def test_the_future_cannot_leak(assert_the_future_cannot_leak):
    assert_the_future_cannot_leak(MaskedMultiHeadAttention(12, 4), torch.randn(2, 10, 12))


def test_dropout_sleeps_after_eval(assert_eval_draws_nothing):
    assert_eval_draws_nothing(MaskedMultiHeadAttention(12, 4), torch.randn(2, 10, 12))


def test_a_longer_sequence_than_the_mask_is_refused():
    with pytest.raises(ShapeError, match="at most 64 positions"):
        MaskedMultiHeadAttention(12, 4)(torch.zeros(1, 65, 12))
