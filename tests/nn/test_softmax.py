import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid.nn import softmax
from pellucid.nn.softmax import widen

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@pytest.mark.parametrize("dtype", DTYPES)
@given(shape=shapes, data=st.data())
def test_it_is_torchs_softmax_along_any_axis(dtype, shape, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = (3 * torch.randn(shape)).to(dtype)
    torch.testing.assert_close(softmax(x, dim), torch.softmax(widen(x), dim).to(dtype))


@given(shape=shapes, shift=st.floats(-1e4, 1e4))
def test_adding_a_constant_changes_nothing(shape, shift):
    x = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(softmax(x + shift, -1), softmax(x, -1), rtol=1e-9, atol=0)


@given(shape=shapes, size=st.floats(0, 1e30))
def test_weights_are_positive_and_sum_to_one_however_large_the_scores(shape, size):
    weights = softmax(size * torch.randn(shape), 0)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(0), torch.ones(shape[1:]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_computed_wide_and_returned_narrow(dtype):
    x = torch.zeros(4099, dtype=dtype)  # a bfloat16 sum of ones stops at 256, a float16 one at 2048
    weights = softmax(x, 0)
    assert weights.dtype == dtype
    torch.testing.assert_close(weights.double().sum(), torch.tensor(1.0, dtype=torch.float64), rtol=4e-3, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_of_nothing_but_never_is_zero_with_gradients_of_zero(dtype):
    x = torch.tensor([[0.5, -torch.inf, 2.0], [-torch.inf] * 3], dtype=dtype, requires_grad=True)
    weights = softmax(x, -1)
    (weights * torch.tensor([1.0, 2.0, 3.0], dtype=dtype)).sum().backward()
    assert weights[1].eq(0).all()
    assert weights[0, 1] == 0
    assert x.grad.isfinite().all()
    assert x.grad[1].eq(0).all()


def test_its_gradient_is_torchs_even_where_one_score_takes_all():
    x = torch.tensor([[1.0, 2.0, 3.0], [0.0, -torch.inf, -torch.inf], [0.0, -1e9, -1e9]], dtype=torch.float64)
    x.requires_grad_()
    upstream = torch.randn(3, 3, dtype=torch.float64)
    (ours,) = torch.autograd.grad(softmax(x, -1), x, upstream)
    (theirs,) = torch.autograd.grad(torch.softmax(x, -1), x, upstream)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 0)])
def test_nothing_at_all_gives_nothing(shape):
    assert softmax(torch.empty(shape), -1).shape == shape


def test_what_is_not_a_number_is_not_hidden():
    assert softmax(torch.tensor([torch.nan, 0.0]), 0).isnan().all()


def test_widen_keeps_what_is_wide():
    assert [widen(torch.ones(1, dtype=dtype)).dtype for dtype in DTYPES] == [torch.float64] + [torch.float32] * 3
