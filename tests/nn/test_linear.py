import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pellucid.nn import Linear
from pellucid.nn.linear import linear_std, truncated_normal_

# What rounding a sum of products to each type may cost, relative to terms of about 1.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("leading", [(), (1,), (3,), (2, 3), (2, 0, 3), (2, 1, 3, 2)])
def test_it_is_torchs_linear_map_on_the_last_axis(dtype, bias, leading):
    linear = Linear(5, 7, bias=bias, dtype=dtype)
    if bias:
        torch.nn.init.normal_(linear.bias)
    x = torch.randn(*leading, 5, dtype=dtype)
    expected = functional.linear(x, linear.weight, linear.bias)
    torch.testing.assert_close(linear(x), expected, rtol=0, atol=TOLERANCE[dtype])


@given(d_in=st.integers(1, 9), d_out=st.integers(1, 9))
def test_rows_times_the_transpose_are_the_matrix_times_columns(d_in, d_out):
    linear, x = Linear(d_in, d_out, dtype=torch.float64), torch.randn(4, d_in, dtype=torch.float64)
    assert linear.weight.shape == (d_out, d_in)
    columns = linear.weight @ x.T  # y = W x, one column a token
    torch.testing.assert_close(linear(x).T, columns)


def test_its_gradients_are_torchs():
    linear, x = Linear(5, 7, bias=True, dtype=torch.float64), torch.randn(2, 3, 5, dtype=torch.float64)
    inputs = [x.requires_grad_(), linear.weight, linear.bias]
    ours = torch.autograd.grad(linear(x).square().sum(), inputs)
    theirs = torch.autograd.grad(functional.linear(*inputs).square().sum(), inputs)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_fresh_weight_is_a_normal_cut_at_three_deviations(dtype):
    weight = Linear(600, 400, dtype=dtype).weight.detach().double() / (2 / 1000) ** 0.5
    assert weight.dtype == torch.float64
    assert weight.std() == pytest.approx(0.9866, abs=0.01)  # of a unit normal cut at 3
    assert weight.mean().abs() < 0.01
    assert 2.8 < weight.abs().max() < 3.01


def test_a_fresh_bias_is_zero_and_absent_unless_asked_for():
    assert Linear(3, 4).bias is None
    assert Linear(3, 4, True).bias.eq(0).all()


def test_device_and_type_come_last_and_are_kept():
    linear = Linear(3, 4, True, "meta", torch.bfloat16)
    assert linear.weight.is_meta
    assert linear.bias.dtype == linear.weight.dtype == torch.bfloat16


def test_a_bias_does_not_widen_what_autocast_narrowed():
    with torch.autocast("cpu", torch.bfloat16):
        assert Linear(3, 4, bias=True)(torch.randn(2, 3)).dtype == torch.bfloat16


def test_the_draw_is_redrawn_not_piled_up_at_the_bounds():
    drawn = truncated_normal_(torch.empty(200_000), std=0.5)
    assert drawn.abs().max() <= 1.5
    assert (drawn.abs() > 1.49).float().mean() < 0.001


def test_the_deviation_is_glorots():
    assert linear_std(30, 70) == pytest.approx((2 / 100) ** 0.5)
