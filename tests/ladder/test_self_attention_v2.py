import pytest
import torch

from pellucid.ladder import SelfAttentionV1, SelfAttentionV2

# Raschka 2024, section 3.4.2: seed 789, three features in, two out.
CONTEXTS = [
    [-0.0739, 0.0713],
    [-0.0748, 0.0703],
    [-0.0749, 0.0702],
    [-0.0760, 0.0685],
    [-0.0763, 0.0679],
    [-0.0754, 0.0693],
]


def test_contexts_are_the_textbooks(inputs):
    torch.manual_seed(789)
    torch.testing.assert_close(SelfAttentionV2(3, 2)(inputs), torch.tensor(CONTEXTS), atol=5.1e-5, rtol=0)


@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("seed", [123, 789])
def test_every_way_of_drawing_gives_the_textbooks_function(draw, new_layers, by_kernel, seed, qkv_bias):
    inputs, attention = draw(seed, lambda: SelfAttentionV2(3, 2, qkv_bias))
    same_inputs, layers = draw(seed, lambda: new_layers(3, 2, qkv_bias))
    torch.testing.assert_close(attention(inputs), by_kernel(same_inputs, layers, causal=False))


def test_with_its_weights_transposed_v1_is_the_same_function(batch):
    second = SelfAttentionV2(3, 2)
    first = SelfAttentionV1(3, 2)
    for name in ("W_query", "W_key", "W_value"):
        getattr(first, name).data = getattr(second, name).weight.data.T
    torch.testing.assert_close(first(batch), second(batch))


def test_the_layers_have_a_bias_only_if_asked_for():
    weights = {"W_query.weight", "W_key.weight", "W_value.weight"}
    assert set(SelfAttentionV2(3, 2).state_dict()) == weights
    assert set(SelfAttentionV2(3, 2, qkv_bias=True).state_dict()) == weights | {
        "W_query.bias",
        "W_key.bias",
        "W_value.bias",
    }
