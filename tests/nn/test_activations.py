import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pellucid.nn import gelu, gelu_tanh, relu2, silu

ORACLES = {
    silu: functional.silu,
    gelu: functional.gelu,
    gelu_tanh: lambda x: functional.gelu(x, approximate="tanh"),
    relu2: lambda x: functional.relu(x) ** 2,
}
functions = pytest.mark.parametrize("function", ORACLES, ids=lambda function: function.__name__)


@functions
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_it_is_torchs(function, dtype):
    x = (4 * torch.randn(500)).to(dtype)
    torch.testing.assert_close(function(x), ORACLES[function](x))


@functions
def test_its_gradient_is_torchs(function):
    x = torch.linspace(-9, 9, 301, dtype=torch.float64, requires_grad=True)
    (ours,) = torch.autograd.grad(function(x).sum(), x)
    (theirs,) = torch.autograd.grad(ORACLES[function](x).sum(), x)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("function", [silu, gelu, gelu_tanh], ids=lambda function: function.__name__)
@given(x=st.floats(-1e4, 1e4))
def test_what_it_lets_through_and_what_it_holds_back_make_the_input(function, x):
    x = torch.tensor(x, dtype=torch.float64)
    torch.testing.assert_close(function(x) - function(-x), x, rtol=1e-9, atol=1e-9)  # x s(x) + x (1 - s(x))


@functions
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_largest_inputs_give_finite_values_and_gradients(function, dtype):
    largest = 200.0 if function is relu2 else 6e4  # the square must still be a float16
    x = torch.tensor([-largest, 0.0, largest], dtype=dtype, requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert y.dtype == dtype
    assert y.isfinite().all()
    assert x.grad.isfinite().all()


@functions
def test_nothing_gives_nothing(function):
    assert function(torch.empty(0, 3)).shape == (0, 3)
