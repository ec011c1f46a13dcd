"""Softmax, and the rule for number types that the whole model follows.

In: scores.  Out: weights that sum to 1.  Used by: attention, sampling.  Read next: activations.py.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def widen(x: Tensor) -> Tensor:
    """`x` in float32, or as it is if that is wider.

    Sums over many terms (norms, softmax, scores, the loss) go through here: bfloat16 keeps 8 bits of a sum, and
    float16 overflows past 65,504.
    """
    return x.to(torch.promote_types(x.dtype, torch.float32))


def softmax(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """exp(x_i) / sum_j exp(x_j) along `dim`.

    The maximum is subtracted first: numerator and denominator shrink by the same factor, so nothing changes except
    that no exponential overflows. Computed in float32 or wider, returned in the type of `x`.

    Args:
        x: Scores; -inf means "never".
        dim: The axis that shall sum to 1.

    Returns:
        Weights. A row of nothing but -inf gives zeros, where torch.softmax gives NaN.

    Source: Vaswani et al. 2017, equation 1, uses it on scores.

    Example:
        >>> softmax(torch.tensor([1000.0, 1000.0, -torch.inf]), dim=0)
        tensor([0.5000, 0.5000, 0.0000])
    """
    if x.shape[dim] == 0:
        return x
    scores = widen(x)
    # The clamp turns a maximum of -inf into a finite number: (-inf) - (-inf) would be NaN.
    maximum = scores.detach().amax(dim, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    exponentials = (scores - maximum).exp()
    # The largest term is exp(0) = 1, so a sum below a half is the empty sum 0; dividing by a half leaves its row at 0.
    total = exponentials.sum(dim, keepdim=True).clamp(min=0.5)
    return (exponentials / total).to(x.dtype)
