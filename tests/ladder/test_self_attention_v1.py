import pytest
import torch
from torch.nn import functional

from pellucid.ladder import SelfAttentionV1, simple_attention

# Raschka 2024, section 3.4.2: seed 123, three features in, two out.
CONTEXTS = [
    [0.2996, 0.8053],
    [0.3061, 0.8210],
    [0.3058, 0.8203],
    [0.2948, 0.7939],
    [0.2927, 0.7891],
    [0.2990, 0.8040],
]
FOUR_DIGITS = {"atol": 5.1e-5, "rtol": 0}  # the textbook prints four


@pytest.fixture
def seeded() -> SelfAttentionV1:
    torch.manual_seed(123)
    return SelfAttentionV1(3, 2)


def test_contexts_are_the_textbooks(seeded, inputs):
    torch.testing.assert_close(seeded(inputs), torch.tensor(CONTEXTS), **FOUR_DIGITS)


def test_each_matrix_plays_the_textbooks_part(seeded, inputs):
    journey = inputs[1]
    query, keys, values = journey @ seeded.W_query, inputs @ seeded.W_key, inputs @ seeded.W_value
    scores = keys @ query
    weights = torch.softmax(scores / 2**0.5, dim=-1)
    torch.testing.assert_close(query, torch.tensor([0.4306, 1.4551]), **FOUR_DIGITS)
    torch.testing.assert_close(scores, torch.tensor([1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.5440]), **FOUR_DIGITS)
    torch.testing.assert_close(weights, torch.tensor([0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]), **FOUR_DIGITS)
    torch.testing.assert_close(weights @ values, torch.tensor(CONTEXTS[1]), **FOUR_DIGITS)


@pytest.mark.parametrize("seed", [123, 789])
def test_every_way_of_drawing_gives_the_textbooks_function(draw, seed):
    inputs, attention = draw(seed, lambda: SelfAttentionV1(3, 2))
    same_inputs, (query, key, value) = draw(seed, lambda: [torch.rand(3, 2) for _ in range(3)])
    expected = functional.scaled_dot_product_attention(same_inputs @ query, same_inputs @ key, same_inputs @ value)
    torch.testing.assert_close(attention(inputs), expected)


def test_with_matrices_that_do_nothing_it_is_attention_without_weights(inputs):
    attention = SelfAttentionV1(3, 3)
    attention.W_query.data = torch.eye(3) * 3**0.5  # takes the division by sqrt(d_out) back
    attention.W_key.data = attention.W_value.data = torch.eye(3)
    torch.testing.assert_close(attention(inputs), simple_attention(inputs))


def test_only_the_three_matrices_are_learned():
    shapes = {name: tuple(parameter.shape) for name, parameter in SelfAttentionV1(3, 2).named_parameters()}
    assert shapes == {"W_query": (3, 2), "W_key": (3, 2), "W_value": (3, 2)}


def test_gradients_reach_all_three_matrices(seeded, inputs):
    seeded(inputs).pow(2).sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in seeded.parameters())
