import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pellucid.errors import ShapeError
from pellucid.nn import attention_weights, causal_mask, fused_attention, scaled_dot_product_attention
from pellucid.nn.attention import packed_mask

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
# Rounding of inputs, weights and the result to each type, values being about 1.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 3e-3}
BOTH = {"written out": scaled_dot_product_attention, "fused": fused_attention}
both_paths = pytest.mark.parametrize("attend", BOTH.values(), ids=BOTH)
every_type = pytest.mark.parametrize("dtype", DTYPES)


def _inputs(*leading, queries=5, keys=7, d_head=8, d_value=6, std=1.0, dtype=torch.float32):
    shapes = (*leading, queries, d_head), (*leading, keys, d_head), (*leading, keys, d_value)
    return [(std * torch.randn(shape)).to(dtype).requires_grad_() for shape in shapes]


def _as_loops(query, key, value, mask, scale):
    """Equation 1 read aloud, a query at a time; queries, keys and values without leading axes."""
    rows = []
    for i, looked_for in enumerate(query):
        seen = [j for j in range(len(key)) if mask[i, j]]
        numerators = [math.exp(float(looked_for @ key[j]) * scale) for j in seen]
        parts = [n / sum(numerators) * value[j] for n, j in zip(numerators, seen, strict=True)]
        rows.append(sum(parts) if parts else torch.zeros_like(value[0]))
    return torch.stack(rows)


# --- the same function, said in other ways


@both_paths
@pytest.mark.parametrize("scale", [None, 0.3])
def test_it_is_equation_one_as_loops(attend, scale):
    query, key, value = (x.detach() for x in _inputs(dtype=torch.float64))
    mask = torch.rand(5, 7) < 0.5
    mask[3] = False
    expected = _as_loops(query, key, value, mask, 8**-0.5 if scale is None else scale)
    torch.testing.assert_close(attend(query, key, value, mask, scale=scale), expected)


MASKS = {  # the query's leading axes, the mask's shape
    "2-D, no mask": ((), None),
    "2-D": ((), (5, 7)),
    "3-D, mask of 2-D": ((2,), (5, 7)),
    "3-D, mask of 3-D": ((2,), (2, 5, 7)),
    "3-D, mask of 1 x": ((2,), (1, 5, 7)),
    "4-D, no mask": ((2, 3), None),
    "4-D, mask of 2-D": ((2, 3), (5, 7)),
    "4-D, the same for every head": ((2, 3), (2, 1, 5, 7)),
    "4-D, its own for every head": ((2, 3), (2, 3, 5, 7)),
    "4-D, keys hidden from every query": ((2, 3), (2, 1, 1, 7)),
    "5-D, mask of 3-D": ((2, 2, 3), (3, 5, 7)),
    "6-D": ((2, 1, 2, 3), (2, 1, 2, 3, 5, 7)),
}


@both_paths
@every_type
@pytest.mark.parametrize("case", MASKS)
def test_it_is_torchs_for_any_leading_axes_and_any_mask_that_broadcasts(attend, dtype, case):
    leading, mask_shape = MASKS[case]
    query, key, value = _inputs(*leading, dtype=dtype)
    mask = None if mask_shape is None else torch.rand(mask_shape) < 0.6
    if mask is not None:
        mask[..., 0] = True  # rows that see nothing have a test of their own
    expected = functional.scaled_dot_product_attention(query.double(), key.double(), value.double(), mask)
    y = attend(query, key, value, mask)
    assert y.dtype == dtype
    torch.testing.assert_close(y, expected.to(dtype), rtol=0, atol=TOLERANCE[dtype])


@both_paths
@every_type
@pytest.mark.parametrize("case", ["2-D", "3-D, mask of 1 x", "4-D, the same for every head"])
def test_its_gradients_are_torchs(attend, dtype, case):
    leading, mask_shape = MASKS[case]
    inputs = _inputs(*leading, dtype=dtype)
    mask = torch.rand(mask_shape) < 0.6
    mask[..., 0] = True
    upstream = torch.randn(*leading, 5, 6).to(dtype)
    ours = torch.autograd.grad(attend(*inputs, mask), inputs, upstream)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    theirs = torch.autograd.grad(functional.scaled_dot_product_attention(*wide, mask), wide, upstream.double())
    for mine, exact in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=0, atol=3 * TOLERANCE[dtype])


@every_type
def test_causal_without_a_mask_is_causal_with_one(dtype):
    query, key, value = _inputs(2, 3, queries=7, dtype=dtype)
    expected = scaled_dot_product_attention(query, key, value, causal_mask(torch.arange(7), 7))
    y = fused_attention(query, key, value, causal=True)
    torch.testing.assert_close(y, expected, rtol=0, atol=TOLERANCE[dtype])


@given(order=st.permutations(range(7)))
def test_the_order_of_keys_with_their_values_does_not_matter(order):
    query, key, value = _inputs(dtype=torch.float64)
    mask = torch.rand(5, 7) < 0.7
    shuffled = scaled_dot_product_attention(query, key[order], value[order], mask[:, order])
    torch.testing.assert_close(shuffled, scaled_dot_product_attention(query, key, value, mask))


def test_weights_times_values_are_the_output():
    query, key, value = _inputs(2, 3)
    mask = torch.rand(5, 7) < 0.6
    weights = attention_weights(query, key, mask)
    torch.testing.assert_close(weights @ value, scaled_dot_product_attention(query, key, value, mask))


@every_type
def test_weights_are_wide_and_sum_to_one_or_to_nothing(dtype):
    query, key, _ = _inputs(2, 3, std=3.0, dtype=dtype)
    mask = torch.rand(2, 3, 5, 7) < 0.3
    weights = attention_weights(query, key, mask)
    assert weights.dtype == torch.promote_types(dtype, torch.float32)
    torch.testing.assert_close(weights.sum(-1).float(), mask.any(-1).float())
    assert weights[~mask].eq(0).all()


def test_scores_of_unit_vectors_have_unit_variance():
    query, key = torch.randn(2, 400, 256)
    unscaled = attention_weights(query, key, scale=0.0)
    assert torch.equal(unscaled, torch.full((400, 400), 1 / 400))
    scores = attention_weights(query, key).log()
    assert (scores - scores.mean(-1, keepdim=True)).std() == pytest.approx(1, abs=0.05)


# --- rows that may see nothing (field note M1)


@both_paths
@every_type
def test_a_row_that_may_see_nothing_is_zero_and_its_gradients_are_finite(attend, dtype):
    query, key, value = _inputs(2, 3, dtype=dtype)
    mask = torch.rand(2, 3, 5, 7) < 0.6
    mask[0, :, 2], mask[1] = False, False  # one row, and a whole sequence
    y = attend(query, key, value, mask)
    y.float().square().sum().backward()
    assert y[~mask.any(-1)].eq(0).all()
    assert all(x.grad.isfinite().all() for x in (query, key, value))
    assert all(x.grad[1].eq(0).all() for x in (query, key, value))


@both_paths
@every_type
def test_a_row_that_may_see_nothing_leaves_its_neighbours_alone(attend, dtype):
    query, key, value = _inputs(2, 3, dtype=dtype)
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
    alone = attend(query, key, value, mask)
    mask[1] = False
    assert torch.equal(attend(query, key, value, mask)[0], alone[0])


@both_paths
def test_a_mask_of_numbers_is_refused_not_added(attend, no_shape_checks):
    query, key, value = _inputs()
    for numbers in (torch.ones(5, 7), torch.ones(5, 7, dtype=torch.int64)):
        with pytest.raises((TypeError, RuntimeError)):
            attend(query, key, value, numbers)


# --- large scores (M2, M20)


@both_paths
@every_type
def test_no_score_is_large_enough_to_be_seen_through_the_mask(attend, dtype):
    query, key, value = _inputs(2, 3, queries=7, std=100.0, dtype=dtype)
    mask = causal_mask(torch.arange(7), 7)
    before = attend(query, key, value, mask)
    gradients = torch.autograd.grad(before[..., :4, :].float().sum(), (key, value))
    with torch.no_grad():
        key[..., 4:, :] *= 50
        value[..., 4:, :] += 300
    assert torch.equal(attend(query, key, value, mask)[..., :4, :], before[..., :4, :])
    assert all(gradient[..., 4:, :].eq(0).all() for gradient in gradients)
    assert (query.float() @ key.float().mT).abs().max() > 1e6


@both_paths
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("d_value", [16, 5], ids=["kernel", "no kernel"])
def test_scores_that_overflow_float16_are_right(attend, autocast, d_value):
    query, key, value = _inputs(2, 3, d_head=16, d_value=d_value, std=200.0, dtype=torch.float16)
    mask = torch.rand(2, 1, 5, 7) < 0.6
    assert (query.float() @ key.float().mT).abs().max() > 65504
    with torch.autocast("cpu", torch.float16, enabled=autocast):
        y = attend(query, key, value, mask)
    y.float().sum().backward()
    expected = attend(query.double(), key.double(), value.double(), mask)
    torch.testing.assert_close(y.double(), expected, rtol=2e-3, atol=1e-6)
    assert all(x.grad.isfinite().all() for x in (query, key, value))


# --- dropout, and nothing


@both_paths
def test_dropout_drops_weights_and_keeps_their_mean(attend):
    query, key = torch.zeros(1, 400, 4), torch.zeros(1, 500, 4)  # every weight is 1/500
    y = attend(query, key, torch.ones(1, 500, 1), dropout=0.5)
    assert y.mean() == pytest.approx(1, abs=0.01)
    assert y.std() == pytest.approx(500**-0.5, rel=0.15)  # a sum of 500 weights of 0 or 2/500


@both_paths
def test_no_dropout_draws_no_random_number(attend):
    state = torch.random.get_rng_state()
    attend(*_inputs())  # draws its own inputs
    drawn = torch.random.get_rng_state()
    torch.random.set_rng_state(state)
    _inputs()
    assert torch.equal(torch.random.get_rng_state(), drawn)


@both_paths
@pytest.mark.parametrize(("queries", "keys"), [(0, 7), (5, 0), (0, 0)])
def test_no_queries_or_no_keys_give_nothing(attend, queries, keys):
    y = attend(*_inputs(2, queries=queries, keys=keys))
    assert y.shape == (2, queries, 6)
    assert y.eq(0).all()


def test_one_key_takes_all():
    query, key, value = _inputs(2, keys=1)
    torch.testing.assert_close(scaled_dot_product_attention(query, key, value), value.expand(2, 5, 6))


# --- masks


@given(length=st.integers(0, 9), window=st.none() | st.integers(1, 10))
def test_a_causal_mask_is_a_triangle_and_a_window_a_band(length, window):
    expected = torch.ones(length, length, dtype=torch.bool).tril()
    if window is not None:
        expected &= torch.ones(length, length, dtype=torch.bool).triu(1 - window)
    assert torch.equal(causal_mask(torch.arange(length), length, window), expected)


@given(cached=st.integers(0, 8), new=st.integers(1, 8), window=st.none() | st.integers(1, 9))
def test_new_queries_behind_cached_keys_see_the_last_rows_of_the_whole_mask(cached, new, window):
    whole = causal_mask(torch.arange(cached + new), cached + new, window)
    assert torch.equal(causal_mask(torch.arange(cached, cached + new), cached + new, window), whole[cached:])


def test_each_row_may_begin_elsewhere():
    mask = causal_mask(torch.tensor([[0, 1], [3, 4]]), 5)
    assert mask.int().tolist() == [[[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]]


def test_a_window_holds_as_many_keys_as_it_says_its_own_included():
    assert causal_mask(torch.arange(9), 9, 3).sum(-1).tolist() == [1, 2, 3, 3, 3, 3, 3, 3, 3]


def test_a_packed_mask_keeps_documents_apart_and_padding_unseen():
    ids = torch.tensor([[0, 0, 1, 1], [5, 5, 5, 5]])
    mask = packed_mask(torch.arange(4)[None], 4, ends=torch.tensor([4, 3]), document_ids=ids)
    assert mask[0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    assert mask[1].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]


def test_a_packed_mask_without_particulars_is_causal():
    assert torch.equal(packed_mask(torch.arange(6)[None], 6, 2)[0], causal_mask(torch.arange(6), 6, 2))


def test_document_ids_must_be_as_many_as_keys():
    with pytest.raises(ShapeError, match="a document id for every key, but got 3 beside 8 keys"):
        packed_mask(torch.arange(3)[None], 8, document_ids=torch.zeros(1, 3, dtype=torch.int64))
