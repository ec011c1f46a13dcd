import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pellucid.nn import LayerNorm, RMSNorm

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
# One rounding of the result: ours rounds once, at the end.
ONE_ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2**-7, torch.float16: 2**-9}


def _pair(kind: str, bias: bool = True, epsilon: float = 1e-5):
    """Ours and torch's, with the same weights, far from 1 and 0."""
    ours = RMSNorm(6, epsilon) if kind == "rms" else LayerNorm(6, epsilon, bias)
    theirs = nn.RMSNorm(6, epsilon) if kind == "rms" else nn.LayerNorm(6, epsilon, bias=bias)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.normal_()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "bias"), [("rms", False), ("layer", True), ("layer", False)])
@pytest.mark.parametrize("cast_weights", [False, True])
def test_it_is_torchs_norm_computed_wide(dtype, kind, bias, cast_weights):
    ours, theirs = _pair(kind, bias)
    x = (3 * torch.randn(2, 5, 6)).to(dtype)
    ours = ours.to(dtype) if cast_weights else ours
    theirs.load_state_dict(ours.state_dict())
    expected = theirs.double()(x.double()).to(dtype)
    y = ours(x)
    assert y.dtype == dtype
    torch.testing.assert_close(y, expected, rtol=max(ONE_ROUNDING[dtype], 1e-12), atol=ONE_ROUNDING[dtype])


@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_its_gradients_are_torchs(kind):
    ours, theirs = _pair(kind)
    x, upstream = torch.randn(4, 6, requires_grad=True), torch.randn(4, 6)
    torch.testing.assert_close(
        torch.autograd.grad(ours(x), [x, *ours.parameters()], upstream),
        torch.autograd.grad(theirs(x), [x, *theirs.parameters()], upstream),
    )


@pytest.mark.parametrize("kind", ["rms", "layer"])
@given(factor=st.floats(1e-3, 1e3))
def test_the_length_of_a_vector_does_not_matter(kind, factor):
    norm = (RMSNorm if kind == "rms" else LayerNorm)(6, 1e-30)
    x = torch.randn(3, 6, dtype=torch.float64)
    torch.testing.assert_close(norm(factor * x), norm(x))


@given(shift=st.floats(-100, 100))
def test_a_layer_norm_does_not_see_a_shift(shift):
    x = torch.randn(3, 6, dtype=torch.float64)
    torch.testing.assert_close(LayerNorm(6)(x + shift), LayerNorm(6)(x))


@pytest.mark.parametrize("norm", [RMSNorm(6), LayerNorm(6)], ids=["rms", "layer"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_past_float16_do_not_overflow(norm, dtype):
    x = torch.tensor([[60000.0, -300.0, 400.0, 0.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    y = norm(x)
    y.square().sum().backward()
    assert y.isfinite().all()
    assert y.detach().double().square().mean() == pytest.approx(1, rel=0.02)
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("norm", [RMSNorm(6), LayerNorm(6)], ids=["rms", "layer"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_zero_vector_stays_zero_with_finite_gradients(norm, dtype):
    x = torch.zeros(2, 6, dtype=dtype, requires_grad=True)
    norm(x).sum().backward()
    assert norm(x).eq(0).all()
    assert x.grad.isfinite().all()


def test_an_offset_is_added_to_the_stored_weight():
    stored, plain = RMSNorm(6, offset=1.0), RMSNorm(6)
    assert stored.weight.eq(0).all()  # multiplies by 1 at first
    with torch.no_grad():
        stored.weight.normal_()
        plain.weight.copy_(1 + stored.weight)
    x = torch.randn(3, 6)
    torch.testing.assert_close(stored(x), plain(x))


def test_an_rms_norm_has_no_bias_and_a_layer_norm_need_not():
    assert [name for name, _ in RMSNorm(4).named_parameters()] == ["weight"]
    assert [name for name, _ in LayerNorm(4, bias=False).named_parameters()] == ["weight"]


def test_the_default_epsilon_is_the_courses():
    assert RMSNorm(4).epsilon == 1e-5


def test_nothing_gives_nothing():
    assert RMSNorm(4)(torch.empty(0, 4)).shape == LayerNorm(4)(torch.empty(0, 4)).shape == (0, 4)
