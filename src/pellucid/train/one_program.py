"""A loss and all its gradients as one compiled program.

    compiled by halves    forward ─▶ what backward needs is kept, the rest recomputed ─▶ backward
    as one program        forward and backward, laid out together

Compiling a module gives two programs with autograd between them. Taking the gradient inside what is compiled gives the
compiler the whole: nothing is computed twice, and between the two there is no Python. 9 to 17 % of a step on a CPU,
for the memory of eager training (docs/log.md). To autograd the whole is one operation, so that `backward`, gradients
that add up, and hooks on parameters work as ever.

In: a module that returns (total, count).  Out: the same function, compiled with its gradient.  Used by: variant.
Read next: variant.py.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

INDUCTOR: dict[str, Any] = {"size_asserts": False}  # checks after each kernel: 3 % of a small step
Program = Callable[..., tuple[dict[str, Tensor], tuple[Tensor, Tensor]]]


class OneProgram(nn.Module):
    """`module(inputs, targets)`, or what else a batch has, and its gradient, compiled together when first called.

    Args:
        module: Returns a total to differentiate, and a count.
        backend: torch.compile's. "eager" only traces, for tests.

    Example:
        >>> class Squares(nn.Linear):
        ...     def forward(self, inputs, targets):
        ...         return (super().forward(inputs) - targets).square().sum(), torch.tensor(len(inputs))
        >>> module = Squares(1, 1, bias=False)
        >>> total, _ = OneProgram(module, backend="eager")(torch.ones(1, 1), torch.zeros(1, 1))
        >>> total.backward()
        >>> torch.equal(module.weight.grad, 2 * module.weight)
        True
    """

    def __init__(self, module: nn.Module, backend: str = "inductor") -> None:
        super().__init__()
        self.module = module
        self.weights = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}

        def total_and_count(weights: dict[str, Tensor], *batch: Tensor) -> tuple[Tensor, Tensor]:
            return torch.func.functional_call(module, weights, batch)

        both = torch.func.grad_and_value(total_and_count, has_aux=True)
        options = INDUCTOR if backend == "inductor" else None
        self.program: Program = torch.compile(both, dynamic=False, backend=backend, options=options)

    def forward(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
        """The total, from which `backward` reaches the parameters, and the count."""
        return _WithGradients.apply(self.program, list(self.weights), batch, *self.weights.values())


class _WithGradients(torch.autograd.Function):
    """Computes gradients on the way forward, where the program has them; backward hands them on."""

    @staticmethod
    def forward(
        ctx: Any, program: Program, names: list[str], batch: tuple[Tensor, ...], *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        values = dict(zip(names, (parameter.detach() for parameter in parameters), strict=True))
        gradients, (total, count) = program(values, *batch)
        ctx.gradients = [gradients[name] for name in names]
        ctx.mark_non_differentiable(count)
        return total, count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyrefly: ignore[bad-override] - the decorator hides its types
        scale, _count = grad_outputs
        gradients, ctx.gradients = ctx.gradients, None
        torch._foreach_mul_(gradients, scale)  # in place: nobody else has them
        return None, None, None, *gradients
