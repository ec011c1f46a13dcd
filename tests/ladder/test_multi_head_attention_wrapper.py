import pytest
import torch

from pellucid.ladder import CausalAttention, MultiHeadAttentionWrapper

# Raschka 2024, section 3.6.1: seed 123, three features in, two heads of two features.
CONTEXTS = [
    [-0.4519, 0.2216, 0.4772, 0.1063],
    [-0.5874, 0.0058, 0.5891, 0.3257],
    [-0.6300, -0.0632, 0.6202, 0.3860],
    [-0.5675, -0.0843, 0.5478, 0.3589],
    [-0.5526, -0.0981, 0.5321, 0.3428],
    [-0.5299, -0.1081, 0.5077, 0.3493],
]


def test_contexts_are_the_textbooks(batch):
    torch.manual_seed(123)
    contexts = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2)(batch)
    torch.testing.assert_close(contexts, torch.tensor([CONTEXTS, CONTEXTS]), atol=5.1e-5, rtol=0)


@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("seed", [123, 789])
def test_every_way_of_drawing_gives_the_textbooks_function(draw, new_layers, by_kernel, seed, qkv_bias):
    inputs, attention = draw(seed, lambda: MultiHeadAttentionWrapper(3, 2, 6, 0.0, 3, qkv_bias))
    same_inputs, heads = draw(seed, lambda: [new_layers(3, 2, qkv_bias) for _ in range(3)])
    expected = torch.cat([by_kernel(same_inputs, layers, causal=True) for layers in heads], dim=-1)
    torch.testing.assert_close(attention(inputs), expected)


def test_one_head_is_causal_attention(batch):
    wrapper = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=1)
    single = CausalAttention(3, 2, 6, 0.0)
    single.load_state_dict(wrapper.heads[0].state_dict())
    assert torch.equal(wrapper(batch), single(batch))


def test_each_heads_findings_lie_side_by_side(batch):
    wrapper = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=3)
    contexts = wrapper(batch)
    for number, head in enumerate(wrapper.heads):
        assert torch.equal(contexts[..., 2 * number : 2 * number + 2], head(batch))


def test_heads_begin_with_weights_of_their_own():
    first, second = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2).heads
    assert not torch.equal(first.W_query.weight, second.W_query.weight)


def test_the_future_cannot_leak(assert_the_future_cannot_leak, batch):
    assert_the_future_cannot_leak(MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2), batch)


def test_dropout_sleeps_after_eval(assert_eval_draws_nothing, batch):
    assert_eval_draws_nothing(MultiHeadAttentionWrapper(3, 2, 6, 0.5, num_heads=2), batch)
