"""The linear map, and how weights begin.

In: the last axis of a tensor.  Out: the same tensor with that axis mapped.
Used by: feed_forward, multi_head, transformer.  Read next: embedding.py.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

Device = torch.device | str | None
DType = torch.dtype | None


def truncated_normal_(weight: Tensor, std: float) -> Tensor:
    """Fill `weight` in place with N(0, std^2), redrawn beyond 3 standard deviations.

    Example:
        >>> bool(truncated_normal_(torch.empty(1000), std=0.1).abs().max() <= 0.3)
        True
    """
    return nn.init.trunc_normal_(weight, std=std, a=-3 * std, b=3 * std)


def linear_std(d_in: int, d_out: int) -> float:
    """Standard deviation of a fresh linear weight: sqrt(2 / (d_in + d_out)).

    Source: the variance is Glorot and Bengio 2010, equation 12; truncated in Stanford CS336 assignment 1, section 3.3.
    """
    return math.sqrt(2 / (d_in + d_out))


class Linear(nn.Module):
    """y = W x + b on the last axis.

    Mathematics writes column vectors, y = W x, so the weight has shape (d_out, d_in). Memory holds rows, one token
    each, and a row is mapped by y = x W^T: the same numbers, read the other way.

    Args:
        d_in: Features in.
        d_out: Features out.
        bias: Whether to add a vector b, zero at first.
        device: Where the weight lives.
        dtype: Its number type.

    Source: `torch.nn.Linear` is the same map; it starts from a uniform distribution and has a bias by default.

    Example:
        >>> Linear(3, 5)(torch.ones(2, 7, 3)).shape
        torch.Size([2, 7, 5])
    """

    def __init__(self, d_in: int, d_out: int, bias: bool = False, device: Device = None, dtype: DType = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in, device=device, dtype=dtype))
        truncated_normal_(self.weight.data, linear_std(d_in, d_out))
        self.bias = nn.Parameter(torch.zeros(d_out, device=device, dtype=dtype)) if bias else None

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Map the last axis."""
        y = x @ self.weight.T
        # Under autocast y may be narrower than the bias; adding as they are would widen everything that follows.
        return y if self.bias is None else y + self.bias.to(y.dtype)
