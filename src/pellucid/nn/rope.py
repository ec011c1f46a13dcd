"""Rotary positions: turn each pair of features by an angle that grows with the position.

After turning, the product of a query at m and a key at n depends on m - n alone. A pair is (i, i + d_head/2), the
halves of a head, as in Hugging Face; the paper pairs neighbours (2i, 2i + 1). The two are the same function up to the
order of features, and `convert` permutes weights from one to the other:

    halves       x0 x1 x2 │ x3 x4 x5      pairs (x0,x3) (x1,x4) (x2,x5)
    neighbours   x0 x1 │ x2 x3 │ x4 x5    pairs (x0,x1) (x2,x3) (x4,x5)

In: queries or keys, positions.  Out: the same, turned.  Used by: multi_head.  Read next: attention.py.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pellucid.errors import ShapeError
from pellucid.model_config import RopeScaling
from pellucid.nn.positions import check_reach
from pellucid.nn.softmax import widen


def rotary_frequencies(
    d_head: int, theta: float = 10000.0, scaling: RopeScaling | None = None
) -> Float[Tensor, " frequency"]:
    """theta^(-2i / d_head) for i = 0 ... d_head/2 - 1, in radians per position, float64.

    Args:
        d_head: Width of a head.
        theta: Base of the wavelengths.
        scaling: How the frequencies are stretched; see `RopeScaling`.

    Source: Su et al. 2021, section 3.2.2; the llama3 blend follows the Llama 3.1 reference code.

    Example:
        >>> rotary_frequencies(4, theta=100.0)
        tensor([1.0000, 0.1000], dtype=torch.float64)
    """
    frequencies = theta ** -(torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    wavelengths = 2 * math.pi / frequencies
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    # 0 for the slow ones (divide), 1 for the fast ones (keep), a straight line between.
    keep = ((scaling.original_context_length / wavelengths - low) / (high - low)).clamp(0, 1)
    return frequencies * (keep + (1 - keep) / scaling.factor)


class RotaryPositions(nn.Module):
    """Turn queries or keys by their positions; values are never turned.

    The tables of cosines and sines are made from float64 angles and kept in float32 whatever the model is cast to:
    bfloat16 cannot tell position 257 from 256.

    Args:
        d_head: Width of a head; even.
        context_length: Rows of the tables; no position may reach past it.
        theta: Base of the wavelengths.
        scaling: How the frequencies are stretched.

    Raises:
        ShapeError: if d_head is odd, context_length is not a length, or a position lies outside the tables.

    Source: Su et al. 2021, equation 34.

    Example:
        >>> rotary = RotaryPositions(d_head=4, context_length=8)
        >>> query, key = torch.randn(4), torch.randn(4)
        >>> at = lambda x, position: rotary(x[None], torch.tensor([position]))[0]
        >>> torch.allclose(at(query, 5) @ at(key, 3), at(query, 2) @ at(key, 0), atol=1e-5)
        True
    """

    def __init__(
        self, d_head: int, context_length: int, theta: float = 10000.0, scaling: RopeScaling | None = None
    ) -> None:
        super().__init__()
        if d_head % 2:
            raise ShapeError("an even d_head, to be turned in pairs", came=str(d_head), remedy="choose an even one")
        if not isinstance(context_length, int) or context_length < 1:
            raise ShapeError(
                "rope to be given context_length, the number of positions in its tables",
                came=repr(context_length),
                remedy="pass the longest sequence the model shall see",
            )
        self.d_head, self.context_length, self.theta, self.scaling = d_head, context_length, theta, scaling
        self.register_buffer("cosine", torch.empty(context_length, d_head), persistent=False)
        self.register_buffer("signed_sine", torch.empty(context_length, d_head), persistent=False)
        self._fill()

    def _fill(self) -> None:
        device = self.cosine.device
        if device.type == "meta":
            return
        frequencies = rotary_frequencies(self.d_head, self.theta, self.scaling)
        angles = torch.outer(torch.arange(self.context_length, dtype=torch.float64), frequencies)
        self.cosine = angles.cos().repeat(1, 2).float().to(device)
        # (x1, x2) becomes (x1 cos - x2 sin, x2 cos + x1 sin): rolled by half, the first half takes the minus.
        self.signed_sine = torch.cat([-angles.sin(), angles.sin()], dim=-1).float().to(device)

    def _apply(self, fn, recurse: bool = True):
        super()._apply(fn, recurse)
        self._fill()  # made anew: a cast would round the angles, to_empty would lose them
        return self

    def forward(
        self, x: Float[Tensor, "*batch position d_head"], positions: Int[Tensor, "*positions position"] | None = None
    ) -> Float[Tensor, "*batch position d_head"]:
        """Turn the vector at each place by that place's position.

        Args:
            x: Queries or keys.
            positions: Absolute positions, broadcast over the leading axes of x. Default: 0, 1, 2, ...
        """
        if positions is None:
            if x.shape[-2] > self.context_length:
                check_reach(torch.tensor([x.shape[-2] - 1]), self.context_length)
            cosine, signed_sine = self.cosine[: x.shape[-2]], self.signed_sine[: x.shape[-2]]
        else:
            check_reach(positions, self.context_length)
            cosine, signed_sine = self.cosine[positions], self.signed_sine[positions]
        wide = widen(x)
        # Of four ways to write this, the one whose compiled bfloat16 gradients are finite on the CPU (docs/log.md).
        return (wide * cosine + wide.roll(self.d_head // 2, -1) * signed_sine).to(x.dtype)
