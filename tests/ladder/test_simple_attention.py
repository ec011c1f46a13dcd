import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.ladder import simple_attention, simple_attention_loop

# Raschka 2024, section 3.3.2.
CONTEXTS = [
    [0.4421, 0.5931, 0.5790],
    [0.4419, 0.6515, 0.5683],
    [0.4431, 0.6496, 0.5671],
    [0.4304, 0.6298, 0.5510],
    [0.4671, 0.5910, 0.5266],
    [0.4177, 0.6503, 0.5645],
]


def test_contexts_are_the_textbooks(inputs):
    torch.testing.assert_close(simple_attention(inputs), torch.tensor(CONTEXTS), atol=5.1e-5, rtol=0)


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32))
def test_two_matrix_products_equal_the_loops(num_positions, d_in, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(num_positions, d_in, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(simple_attention(inputs), simple_attention_loop(inputs))


def test_the_gradient_equals_that_of_the_loops(inputs):
    gradients = []
    for attend in (simple_attention, simple_attention_loop):
        leaf = inputs.double().requires_grad_()
        attend(leaf).pow(2).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)


def test_a_batch_gives_what_each_sequence_gives_alone():
    inputs = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
    alone = torch.stack([torch.stack([simple_attention(sequence) for sequence in row]) for row in inputs])
    torch.testing.assert_close(simple_attention(inputs), alone)


def test_shuffled_positions_give_the_same_contexts_shuffled(inputs):
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(simple_attention(inputs[order]), simple_attention(inputs)[order])


def test_no_positions_give_no_contexts():
    assert simple_attention(torch.zeros(0, 3)).shape == (0, 3)
