"""AdamW, written out: each weight moves by its gradient's running mean over its running size.

Training uses torch's fused kernel (model_optimizer.py); this is the same mathematics in the open, for reading and for
the course.

In: parameters with gradients.  Out: updated parameters.  Used by: cs336.  Read next: muon.py.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from pellucid.errors import ConfigError


class AdamW(torch.optim.Optimizer):
    """Adam with decoupled weight decay.

    m = beta1 m + (1 - beta1) g               the running mean of gradients
    v = beta2 v + (1 - beta2) g^2             the running mean of their squares
    a = lr sqrt(1 - beta2^t) / (1 - beta1^t)  both means began at 0, which this undoes
    w = w - a m / (sqrt(v) + eps)
    w = w - lr weight_decay w

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate.
        weight_decay: The share lr * weight_decay of a weight is taken away each step.
        betas: How much of m and of v is kept at each step.
        eps: Keeps the quotient finite where v is 0.

    Raises:
        ConfigError: a setting outside its range.

    Source: Loshchilov & Hutter 2019, algorithm 2, in the order of Stanford CS336 assignment 1. `torch.optim.AdamW`
        decays before it moves and adds eps after undoing the start of v; the two differ by terms of lr^2 and of eps.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = AdamW([weight], lr=0.1)
        >>> weight.grad = torch.tensor([1e-3, -1e3])
        >>> optimizer.step()
        >>> weight.detach()  # the first step has length lr, whatever the gradient's size
        tensor([0.8990, 1.0989])
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        weight_decay: float = 0.01,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        in_range = lr >= 0 and weight_decay >= 0 and eps >= 0 and all(0 <= beta < 1 for beta in betas)
        if not in_range:
            raise ConfigError(
                "lr, weight_decay and eps of 0 or more and betas from 0 up to, not including, 1",
                came=f"lr={lr}, weight_decay={weight_decay}, eps={eps}, betas={betas}",
                remedy="change the one that is not",
            )
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient. A closure, if given, is evaluated first and its value returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, group)
        return loss

    def _move(self, parameter: Tensor, group: dict[str, Any]) -> None:
        gradient, state, lr = parameter.grad, self.state[parameter], group["lr"]
        beta1, beta2 = group["betas"]
        if not state:
            state.update(step=0, exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
        state["step"] += 1
        mean, mean_square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(beta1).add_(gradient, alpha=1 - beta1)
        mean_square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        distance = lr * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
        parameter.addcdiv_(mean, mean_square.sqrt().add_(group["eps"]), value=-distance)
        parameter.mul_(1 - lr * group["weight_decay"])
