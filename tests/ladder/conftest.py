"""What the ladder's tests share: the textbook's six words, three ways to draw, torch's kernel as the oracle."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional


@pytest.fixture(autouse=True)
def _the_same_numbers_whatever_ran_before() -> None:
    torch.manual_seed(0)


@pytest.fixture
def inputs() -> Tensor:
    """Typed in anew from the textbook, so that the room's own copy is checked too."""
    return torch.tensor(
        [
            [0.43, 0.15, 0.89],
            [0.55, 0.87, 0.66],
            [0.57, 0.85, 0.64],
            [0.22, 0.58, 0.33],
            [0.77, 0.25, 0.10],
            [0.05, 0.80, 0.55],
        ]
    )


@pytest.fixture
def batch(inputs) -> Tensor:
    return torch.stack([inputs, inputs])


Draw = Callable[[int, Callable], tuple[Tensor, object]]


@pytest.fixture(
    params=["inputs given", "rand before the weights", "randn before the weights", "rand after the weights"]
)
def draw(request, batch) -> Draw:
    """Draws (inputs, whatever `build` builds) from one seed, in each order that a worked example may use.

    Only a rung that takes exactly as many random numbers as the textbook's class, in the same order, agrees in all.
    """

    def draw_from(seed: int, build: Callable) -> tuple[Tensor, object]:
        torch.manual_seed(seed)
        match request.param:
            case "inputs given":
                return batch, build()
            case "rand before the weights":
                return torch.rand(2, 6, 3), build()
            case "randn before the weights":
                return torch.randn(2, 6, 3), build()
            case "rand after the weights":
                built = build()
                return torch.rand(2, 6, 3), built

    return draw_from


def linear_layers(d_in: int, d_out: int, bias: bool = False) -> list[nn.Linear]:
    return [nn.Linear(d_in, d_out, bias=bias) for _ in ("query", "key", "value")]


def head_by_kernel(x: Tensor, layers: list[nn.Linear], *, causal: bool) -> Tensor:
    query, key, value = (layer(x) for layer in layers)
    return functional.scaled_dot_product_attention(query, key, value, is_causal=causal)


@pytest.fixture
def new_layers() -> Callable:
    """Makes the query, key and value layers of one head, in this order."""
    return linear_layers


@pytest.fixture
def by_kernel() -> Callable:
    """One head of attention through torch's own fused kernel."""
    return head_by_kernel


@pytest.fixture
def with_random_weights() -> Callable:
    """Gives every parameter of a module values of standard deviation 0.3: small ones would make attention uniform."""

    def fill(module: nn.Module) -> nn.Module:
        generator = torch.Generator().manual_seed(0)
        for parameter in module.parameters():
            parameter.data.normal_(std=0.3, generator=generator)
        return module

    return fill


@pytest.fixture
def assert_the_future_cannot_leak() -> Callable:
    """Changes what comes after a position, with scores in the millions, and asks for the same bits before it."""

    def check_with_scores_times(module: nn.Module, x: Tensor, factor: float) -> None:
        module.eval()
        for name, parameter in module.named_parameters():
            if "W_query" in name:
                parameter.data *= factor
        x = x.clone().requires_grad_()
        before = module(x)
        changed = x.detach().clone()
        changed[..., 3:, :] = 7.0
        assert torch.equal(module(changed)[..., :3, :], before[..., :3, :])
        (gradient,) = torch.autograd.grad(before[..., 2, :].sum(), x)
        assert torch.count_nonzero(gradient[..., 3:, :]) == 0
        assert torch.count_nonzero(gradient[..., :3, :]) > 0

    def check(module: nn.Module, x: Tensor) -> None:
        check_with_scores_times(module, x, 1e6)
        check_with_scores_times(module, x, -1.0)  # what was a million above is now a million below

    return check


@pytest.fixture
def assert_eval_draws_nothing() -> Callable:
    """Two passes after eval() are equal and leave torch's random state alone; passes while training are not equal."""

    def check(module: nn.Module, x: Tensor) -> None:
        module.eval()
        state = torch.get_rng_state()
        assert torch.equal(module(x), module(x))
        assert torch.equal(torch.get_rng_state(), state)
        module.train()
        assert not torch.equal(module(x), module(x))

    return check
