import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.ladder.simple_attention_loop import (
    context_of_weights,
    scores_of_query,
    simple_attention_loop,
    weights_by_softmax,
    weights_by_sum,
)

# Raschka 2024, section 3.3.1: the second word, "journey", as the query.
SCORES = [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865]
WEIGHTS_BY_SUM = [0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]
WEIGHTS = [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581]
CONTEXT = [0.4419, 0.6515, 0.5683]
FOUR_DIGITS = {"atol": 5.1e-5, "rtol": 0}  # the textbook prints four


@pytest.fixture
def journey(inputs):
    return inputs[1]


def test_scores_of_one_query_are_the_textbooks(inputs, journey):
    torch.testing.assert_close(scores_of_query(inputs, journey), torch.tensor(SCORES), **FOUR_DIGITS)


def test_scores_are_dot_products(inputs, journey):
    expected = torch.stack([torch.dot(word, journey) for word in inputs])
    torch.testing.assert_close(scores_of_query(inputs, journey), expected)


def test_softmax_weights_of_one_query_are_the_textbooks(inputs, journey):
    weights = weights_by_softmax(scores_of_query(inputs, journey))
    torch.testing.assert_close(weights, torch.tensor(WEIGHTS), **FOUR_DIGITS)


def test_the_context_of_one_query_is_the_textbooks(inputs, journey):
    weights = weights_by_softmax(scores_of_query(inputs, journey))
    torch.testing.assert_close(context_of_weights(inputs, weights), torch.tensor(CONTEXT), **FOUR_DIGITS)


def test_weights_by_sum_look_right_on_the_worked_example(inputs, journey):
    weights = weights_by_sum(scores_of_query(inputs, journey))
    torch.testing.assert_close(weights, torch.tensor(WEIGHTS_BY_SUM), **FOUR_DIGITS)


def test_weights_by_sum_of_negative_scores_are_not_shares():
    weights = weights_by_sum(torch.tensor([2.0, -1.0]))
    assert weights.sum() == 1
    assert weights.min() < 0
    assert weights.max() > 1


def test_weights_by_sum_divide_by_zero():
    assert not weights_by_sum(torch.tensor([1.0, -1.0])).isfinite().any()


def test_weights_by_sum_change_when_every_score_rises_alike():
    scores = torch.tensor([1.0, 2.0, 3.0])
    assert not torch.allclose(weights_by_sum(scores), weights_by_sum(scores + 10))


@settings(deadline=None)
@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=8), st.floats(-50, 50, width=32))
def test_softmax_weights_are_shares_that_only_differences_decide(scores, rise):
    scores = torch.tensor(scores, dtype=torch.float64)
    weights = weights_by_softmax(scores)
    assert weights.min() >= 0
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0, dtype=torch.float64))
    torch.testing.assert_close(weights, torch.softmax(scores, dim=0))
    torch.testing.assert_close(weights_by_softmax(scores + rise), weights)


def test_softmax_weights_of_huge_scores_are_finite():
    torch.testing.assert_close(weights_by_softmax(torch.tensor([1e30, 1e30, -1e30])), torch.tensor([0.5, 0.5, 0.0]))


def test_every_position_in_turn_is_the_query(inputs):
    contexts = simple_attention_loop(inputs)
    for position, query in enumerate(inputs):
        weights = weights_by_softmax(scores_of_query(inputs, query))
        assert torch.equal(contexts[position], context_of_weights(inputs, weights))


def test_one_position_is_its_own_context():
    alone = torch.tensor([[0.3, -2.0, 5.0]])
    torch.testing.assert_close(simple_attention_loop(alone), alone)


def test_no_positions_give_no_contexts():
    assert simple_attention_loop(torch.zeros(0, 3)).shape == (0, 3)
