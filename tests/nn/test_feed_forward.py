import pytest
import torch
from torch import nn
from torch.nn import functional

from pellucid.nn import (
    GEGLU,
    FeedForward,
    GatedFeedForward,
    GeluFeedForward,
    Relu2FeedForward,
    SiluFeedForward,
    SwiGLU,
    relu2,
    silu,
)

PLAIN = {
    "gelu": (GeluFeedForward, {}, functional.gelu),
    "gelu tanh": (GeluFeedForward, {"approximate": "tanh"}, lambda x: functional.gelu(x, approximate="tanh")),
    "silu": (SiluFeedForward, {}, functional.silu),
    "relu2": (Relu2FeedForward, {}, lambda x: functional.relu(x) ** 2),
}
GATED = {
    "swiglu": (SwiGLU, {}, functional.silu),
    "geglu": (GEGLU, {}, functional.gelu),
    "geglu tanh": (GEGLU, {"approximate": "tanh"}, lambda x: functional.gelu(x, approximate="tanh")),
}
biases = pytest.mark.parametrize("bias", [False, True])


def _randomised(part: nn.Module) -> nn.Module:
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.5)
    return part.double()


@pytest.mark.parametrize("kind", PLAIN)
@biases
def test_plain_is_down_of_activation_of_up(kind, bias):
    make, choice, activation = PLAIN[kind]
    part, x = _randomised(make(6, 10, bias=bias, **choice)), torch.randn(2, 3, 6, dtype=torch.float64)
    inner = activation(functional.linear(x, part.up.weight, part.up.bias))
    torch.testing.assert_close(part(x), functional.linear(inner, part.down.weight, part.down.bias))


@pytest.mark.parametrize("kind", GATED)
@biases
def test_gated_multiplies_up_by_the_activated_gate(kind, bias):
    make, choice, activation = GATED[kind]
    part, x = _randomised(make(6, 10, bias=bias, **choice)), torch.randn(2, 3, 6, dtype=torch.float64)
    gate = activation(functional.linear(x, part.gate.weight, part.gate.bias))
    inner = gate * functional.linear(x, part.up.weight, part.up.bias)
    torch.testing.assert_close(part(x), functional.linear(inner, part.down.weight, part.down.bias))


@pytest.mark.parametrize("kind", PLAIN | GATED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_values_and_gradients_are_finite_in_every_type(kind, dtype):
    make, choice, _ = (PLAIN | GATED)[kind]
    part, x = make(6, 10, **choice).to(dtype), (5 * torch.randn(4, 6)).to(dtype).requires_grad_()
    part(x).float().square().mean().backward()
    assert part(x).dtype == dtype
    assert all(gradient.isfinite().all() for gradient in [x.grad, *(p.grad for p in part.parameters())])


@pytest.mark.parametrize("kind", PLAIN | GATED)
@biases
def test_a_bias_is_on_every_map_or_on_none(kind, bias):
    make, choice, _ = (PLAIN | GATED)[kind]
    maps = list(make(6, 10, bias=bias, **choice).children())
    assert len(maps) == (3 if kind in GATED else 2)
    assert all((linear.bias is not None) == bias for linear in maps)


def test_each_token_is_worked_on_alone():
    part, x = SwiGLU(6, 10), torch.randn(5, 6)
    torch.testing.assert_close(part(x), torch.stack([part(token) for token in x]))


def test_any_activation_will_do():
    x = torch.randn(2, 6)
    plain, gated = FeedForward(6, 10, relu2), GatedFeedForward(6, 10, silu)
    torch.testing.assert_close(plain(x), plain.down(relu2(plain.up(x))))
    torch.testing.assert_close(gated(x), gated.down(silu(gated.gate(x)) * gated.up(x)))
