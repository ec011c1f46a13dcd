"""The functions between two linear maps, each on its own element.

In: any tensor.  Out: the same shape.  Used by: feed_forward.  Read next: norms.py.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.nn.softmax import widen

Activation = Callable[[Tensor], Tensor]


def silu(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """x * sigmoid(x), also called swish.

    Source: Elfwing et al. 2017; Hendrycks and Gimpel 2016.

    Example:
        >>> silu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7311])
    """
    wide = widen(x)
    return (wide * torch.sigmoid(wide)).to(x.dtype)


def gelu(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """x * Phi(x), with Phi the distribution function of the normal distribution.

    Source: Hendrycks and Gimpel 2016, section 2.

    Example:
        >>> gelu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8413])
    """
    wide = widen(x)
    return (0.5 * wide * (1 + torch.erf(wide / math.sqrt(2)))).to(x.dtype)


def gelu_tanh(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the approximation GPT-2 was trained with.

    Source: Hendrycks and Gimpel 2016, section 2, where 0.044715 comes from.

    Example:
        >>> gelu_tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8412])
    """
    wide = widen(x)
    # (1 + tanh(u)) / 2 is sigmoid(2u), which processors compute several times faster (docs/log.md).
    return (wide * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))).to(x.dtype)


def relu2(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """max(x, 0)^2.

    Source: So et al. 2021 (Primer), section 3.2.

    Example:
        >>> relu2(torch.tensor([-2.0, 3.0]))
        tensor([0., 9.])
    """
    return torch.relu(x).square()
