import pytest
import torch
from torch.nn import functional

from pellucid.errors import ShapeError
from pellucid.ladder import CausalAttention, SelfAttentionV2

# Raschka 2024, section 3.5.3: seed 123, three features in, two out, no dropout.
CONTEXTS = [
    [-0.4519, 0.2216],
    [-0.5874, 0.0058],
    [-0.6300, -0.0632],
    [-0.5675, -0.0843],
    [-0.5526, -0.0981],
    [-0.5299, -0.1081],
]


def test_contexts_are_the_textbooks(batch):
    torch.manual_seed(123)
    contexts = CausalAttention(3, 2, 6, 0.0)(batch)
    torch.testing.assert_close(contexts, torch.tensor([CONTEXTS, CONTEXTS]), atol=5.1e-5, rtol=0)


@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("seed", [123, 789])
def test_every_way_of_drawing_gives_the_textbooks_function(draw, new_layers, by_kernel, seed, qkv_bias):
    inputs, attention = draw(seed, lambda: CausalAttention(3, 2, 6, 0.0, qkv_bias))
    same_inputs, layers = draw(seed, lambda: new_layers(3, 2, qkv_bias))
    torch.testing.assert_close(attention(inputs), by_kernel(same_inputs, layers, causal=True))


def test_each_row_is_self_attention_over_the_prefix_that_ends_there(batch):
    causal = CausalAttention(3, 2, 6, 0.0)
    unmasked = SelfAttentionV2(3, 2)
    unmasked.load_state_dict(causal.state_dict(), strict=False)
    prefixes = torch.stack([unmasked(batch[:, :end])[:, -1] for end in range(1, 7)], dim=1)
    torch.testing.assert_close(causal(batch), prefixes)


def test_the_future_cannot_leak(assert_the_future_cannot_leak, batch):
    assert_the_future_cannot_leak(CausalAttention(3, 2, 6, 0.0), batch)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_mask_is_cut_to_the_inputs_length(batch, length):
    attention = CausalAttention(3, 2, 6, 0.0)
    torch.testing.assert_close(attention(batch[:, :length]), attention(batch)[:, :length])


def test_a_longer_sequence_than_the_mask_is_refused_by_both_numbers():
    with pytest.raises(ShapeError, match=r"at most 6 positions \(context_length=6\), but got 7 positions"):
        CausalAttention(3, 2, 6, 0.0)(torch.zeros(1, 7, 3))


def test_one_sequence_gives_what_it_gives_in_a_batch(inputs, batch):
    attention = CausalAttention(3, 2, 6, 0.0)
    torch.testing.assert_close(attention(inputs), attention(batch)[0])


def test_dropout_falls_on_the_weights_as_in_the_textbook(batch):
    attention = CausalAttention(3, 2, 6, 0.5)
    query, key, value = attention.W_query(batch), attention.W_key(batch), attention.W_value(batch)
    scores = (query @ key.transpose(1, 2)).masked_fill(torch.ones(6, 6).triu(1) == 1, -torch.inf)
    torch.manual_seed(123)
    expected = functional.dropout(torch.softmax(scores / 2**0.5, dim=-1), 0.5) @ value
    torch.manual_seed(123)
    torch.testing.assert_close(attention(batch), expected)


def test_dropout_sleeps_after_eval(assert_eval_draws_nothing, batch):
    assert_eval_draws_nothing(CausalAttention(3, 2, 6, 0.5), batch)


def test_a_state_dict_of_the_textbooks_class_loads_and_hides_the_same_keys(batch):
    attention = CausalAttention(3, 2, 6, 0.0)
    contexts = attention(batch)
    # There, the mask is a buffer too, and made of numbers.
    theirs = {**attention.state_dict(), "mask": torch.triu(torch.ones(6, 6), diagonal=1)}
    fresh = CausalAttention(3, 2, 6, 0.0)
    fresh.load_state_dict(theirs)
    assert torch.equal(fresh(batch), contexts)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_every_number_type_gives_the_same_contexts_within_its_precision(batch, dtype):
    attention = CausalAttention(3, 2, 6, 0.0)
    expected = attention(batch)
    contexts = attention.to(dtype)(batch.to(dtype))
    assert contexts.dtype == dtype
    tolerance = 4 * max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)  # values near 1, a few roundings
    torch.testing.assert_close(contexts.float(), expected, atol=tolerance, rtol=tolerance)
