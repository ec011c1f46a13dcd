"""Norms: bring every token's vector to the same size before a part reads it.

In: vectors.  Out: vectors of about unit size per feature.  Used by: multi_head, block, transformer.
Read next: feed_forward.py.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.nn.softmax import widen


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * (offset + weight), over the last axis.

    Args:
        d_model: Width.
        epsilon: Added to the mean square, so that a zero vector stays zero.
        offset: Added to the weight; Gemma stores w and multiplies by 1 + w.

    Source: Zhang and Sennrich 2019, equation 4. All of it is computed in float32; Hugging Face's Llama rounds to the
    input's type before the weight multiplies, which differs in bfloat16 only.

    Example:
        >>> RMSNorm(2)(torch.tensor([3.0, 4.0]))  # root mean square 3.5355
        tensor([0.8485, 1.1314], grad_fn=<MulBackward0>)
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5, offset: float = 0.0) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.offset = offset
        # The weight that multiplies is 1 at first, however it is stored.
        self.weight = nn.Parameter(torch.full((d_model,), 1.0 - offset))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Scale each vector."""
        wide = widen(x)
        inverse_rms = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
        weight = widen(self.weight)
        return (wide * inverse_rms * (weight + self.offset if self.offset else weight)).to(x.dtype)


class LayerNorm(nn.Module):
    """(x - mean(x)) / sqrt(var(x) + epsilon) * weight + bias, over the last axis.

    Args:
        d_model: Width.
        epsilon: Added to the variance.
        bias: Whether to add a vector, zero at first.

    Source: Ba, Kiros and Hinton 2016, equation 4; the variance divides by n, not n - 1.

    Example:
        >>> LayerNorm(2)(torch.tensor([3.0, 5.0])).detach()
        tensor([-1.0000,  1.0000])
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Centre and scale each vector."""
        wide = widen(x)
        centred = wide - wide.mean(-1, keepdim=True)
        inverse_deviation = torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.epsilon)
        y = centred * inverse_deviation * widen(self.weight)
        return (y if self.bias is None else y + widen(self.bias)).to(x.dtype)
