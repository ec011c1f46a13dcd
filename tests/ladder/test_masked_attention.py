import inspect

import pytest
import torch

from pellucid.errors import ShapeError
from pellucid.ladder import CausalAttention, MaskedAttention


def test_with_the_same_weights_it_is_causal_attention(with_random_weights):
    masked = with_random_weights(MaskedAttention(12, 4)).eval()
    causal = CausalAttention(12, 4, context_length=64, dropout=0.4).eval()
    causal.load_state_dict(masked.state_dict(), strict=False)  # tril stays behind; causal has its own mask
    x = torch.randn(2, 10, 12)
    torch.testing.assert_close(masked(x), causal(x))


@pytest.mark.parametrize("seed", [123, 789])
def test_every_way_of_drawing_gives_the_textbooks_function(draw, new_layers, by_kernel, seed):
    inputs, attention = draw(seed, lambda: MaskedAttention(3, 2, 6, dropout=0.0))
    same_inputs, layers = draw(seed, lambda: new_layers(3, 2))
    torch.testing.assert_close(attention(inputs), by_kernel(same_inputs, layers, causal=True))


def test_while_training_the_same_weights_are_dropped_as_in_causal_attention(with_random_weights):
    masked = with_random_weights(MaskedAttention(12, 4))
    causal = CausalAttention(12, 4, context_length=64, dropout=0.4)
    causal.load_state_dict(masked.state_dict(), strict=False)
    x = torch.randn(2, 10, 12)
    torch.manual_seed(123)
    expected = causal(x)
    torch.manual_seed(123)
    torch.testing.assert_close(masked(x), expected)


def test_it_drops_two_fifths_of_the_weights_unless_told_otherwise():
    defaults = inspect.signature(MaskedAttention).parameters
    assert (defaults["context_length"].default, defaults["dropout"].default) == (64, 0.4)
    assert MaskedAttention(12, 4).dropout.p == 0.4


def test_the_future_cannot_leak(assert_the_future_cannot_leak):
    assert_the_future_cannot_leak(MaskedAttention(12, 4), torch.randn(2, 10, 12))


def test_dropout_sleeps_after_eval(assert_eval_draws_nothing):
    assert_eval_draws_nothing(MaskedAttention(12, 4), torch.randn(2, 10, 12))


def test_a_longer_sequence_than_the_mask_is_refused_by_both_numbers():
    with pytest.raises(ShapeError, match=r"at most 64 positions \(context_length=64\), but got 65 positions"):
        MaskedAttention(12, 4)(torch.zeros(1, 65, 12))


def test_no_layer_of_the_head_has_a_bias():
    assert {name for name, _ in MaskedAttention(12, 4).named_parameters()} == {
        "W_query.weight",
        "W_key.weight",
        "W_value.weight",
    }
