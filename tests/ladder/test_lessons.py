import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from pellucid.ladder import lessons


@settings(deadline=None)
@given(st.integers(0, 20))
def test_three_ways_to_make_a_causal_mask_are_one_mask(length):
    from_triu = lessons.causal_mask_from_triu(length)
    assert torch.equal(from_triu, lessons.causal_mask_from_tril(length))
    assert torch.equal(from_triu, lessons.causal_mask_from_positions(length))
    assert from_triu.shape == (length, length)


def test_the_mask_shows_the_present_and_the_past():
    mask = lessons.causal_mask_from_positions(4)
    for query in range(4):
        for key in range(4):
            assert mask[query, key] == (key <= query)


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32))
def test_a_causal_mask_equals_n_separate_prefix_runs(length, seed):
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, 3, length, 4, generator=generator, dtype=torch.float64)
    value = torch.randn(3, length, 2, generator=generator, dtype=torch.float64)
    masked = lessons.attention(query, key, value, lessons.causal_mask_from_tril(length))
    torch.testing.assert_close(lessons.attention_by_prefixes(query, key, value), masked)


def test_attention_is_torchs_own():
    query, key = torch.randn(2, 3, 6, 4)
    value = torch.randn(3, 6, 5)
    expected = nn.functional.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(lessons.attention(query, key, value), expected)


def test_rows_sum_to_one_after_minus_infinity():
    scores, mask = torch.randn(2, 7, 7) * 3, lessons.causal_mask_from_tril(7)
    weights = lessons.hide_before_softmax(scores, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 7))
    assert weights[..., ~mask].count_nonzero() == 0


def test_rows_hidden_after_softmax_have_to_be_divided_again():
    scores, mask = torch.randn(2, 7, 7) * 3, lessons.causal_mask_from_tril(7)
    weights = lessons.hide_after_softmax(scores, mask)
    assert (weights.sum(-1)[:, :-1] < 1).all()
    divided = weights / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(divided, lessons.hide_before_softmax(scores, mask))


def test_hiding_after_softmax_loses_a_row_whose_hidden_score_was_far_the_largest():
    scores, mask = torch.tensor([[0.0, 200.0], [0.0, 0.0]]), lessons.causal_mask_from_tril(2)
    assert lessons.hide_after_softmax(scores, mask)[0].sum() == 0
    assert lessons.hide_before_softmax(scores, mask)[0].sum() == 1


@pytest.mark.parametrize("d_head", [4, 64, 256])
def test_scaled_scores_have_variance_near_one_where_unscaled_have_d_head(d_head):
    torch.manual_seed(0)
    # The estimate's own error is 1 % (20,000 pairs), a little more for short vectors, whose products have long tails.
    assert lessons.variance_of_scores(d_head, scaled=True) == pytest.approx(1, rel=0.06)
    assert lessons.variance_of_scores(d_head, scaled=False) == pytest.approx(d_head, rel=0.06)


def test_softmax_saturates_as_its_inputs_variance_grows():
    rows = torch.randn(100, 16)
    largest_weights, slopes = [], []
    for variance in (1.0, 10.0, 100.0, 1000.0):
        seen = [lessons.saturation(row, variance**0.5) for row in rows]
        largest_weights.append(sum(row.largest_weight for row in seen) / len(seen))
        slopes.append(sum(row.largest_slope for row in seen) / len(seen))
    assert largest_weights == sorted(largest_weights)
    assert largest_weights[0] < 0.5
    assert largest_weights[-1] > 0.9
    assert slopes[-1] < 0.5 * slopes[0]


def test_a_thousand_times_the_scores_is_one_hot_and_flat():
    scores = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
    assert lessons.saturation(scores, 1000.0) == (1.0, 0.0)


def test_the_slope_is_that_of_softmax():
    scores = torch.randn(5, generator=torch.Generator().manual_seed(0))
    jacobian = torch.autograd.functional.jacobian(lambda row: torch.softmax(2.0 * row, dim=-1) / 2.0, scores)
    assert lessons.saturation(scores, 2.0).largest_slope == pytest.approx(float(jacobian.abs().max()), rel=1e-5)


def test_named_axes_equal_a_matrix_product_for_any_leading_axes():
    query, key = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)
    torch.testing.assert_close(lessons.scores_by_name(query, key), query @ key.transpose(-2, -1))


def test_a_shared_axis_contracts():
    left, right = torch.randn(2, 3), torch.randn(3, 4)
    torch.testing.assert_close(lessons.shared_axis_contracts(left, right), left @ right)


def test_a_missing_axis_sums():
    x = torch.randn(3, 4)
    torch.testing.assert_close(lessons.missing_axis_sums(x), x.sum(dim=-1))


def test_a_new_axis_broadcasts():
    left, right = torch.randn(3), torch.randn(4)
    torch.testing.assert_close(lessons.new_axis_broadcasts(left, right), left[:, None] * right[None, :])


@pytest.mark.parametrize("part", [nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU()], ids=lambda part: type(part).__name__)
def test_adding_in_place_breaks_the_backward_pass(part):
    embedded = nn.Linear(4, 4)(torch.randn(2, 4))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lessons.residual_in_place(embedded, part).sum().backward()


def test_adding_into_a_new_tensor_does_not():
    start, part = torch.randn(2, 4, requires_grad=True), nn.Linear(4, 4)
    lessons.residual(start * 1.0, part).sum().backward()
    torch.testing.assert_close(start.grad, 1 + part.weight.sum(0).expand(2, 4))


def test_both_ways_of_adding_give_the_same_numbers():
    x, part = torch.randn(2, 4), nn.Linear(4, 4)
    expected = lessons.residual(x, part)
    assert torch.equal(lessons.residual_in_place(x, part), expected)


def test_adding_in_place_goes_unpunished_where_nothing_was_kept():
    start = torch.randn(2, 4, requires_grad=True)
    lessons.residual_in_place(start * 1.0, lambda x: x * 2).sum().backward()
    assert torch.equal(start.grad, torch.full((2, 4), 3.0))
