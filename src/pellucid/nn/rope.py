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
from pellucid.nn.embedding import look_up

WHOLE = 2**20
"""Numbers in a table: as many are made at once (20 ms, 4 MB), longer tables only as far as they are asked for."""


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
    # On the CPU whatever the default: meta tensors of this kind make torch load its compiler, which takes a second.
    frequencies = theta ** -(torch.arange(0, d_head, 2, dtype=torch.float64, device="cpu") / d_head)
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
    bfloat16 cannot tell position 257 from 256. Where they would be long they grow with the positions that come (in a
    compiled graph, with the length alone: see `reach`).

    Args:
        d_head: Width of a head; even.
        context_length: How many positions there are; none may reach past it.
        theta: Base of the wavelengths.
        scaling: How the frequencies are stretched.

    Raises:
        ShapeError: if d_head is odd, context_length is not a length, or a position lies outside.

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
            expected = "a context_length, the number of positions that rope has tables for"
            raise ShapeError(expected, came=repr(context_length), remedy="give the longest sequence it will see")
        self.d_head, self.context_length, self.theta, self.scaling = d_head, context_length, theta, scaling
        self.register_buffer("cosine", torch.empty(0, d_head), persistent=False)
        self.register_buffer("signed_sine", torch.empty(0, d_head), persistent=False)
        self.reach(min(context_length, WHOLE // d_head))

    def reach(self, length: int) -> None:
        """Have tables for positions 0 to length - 1; the rows that are there do not change."""
        num_rows = len(self.cosine)
        if num_rows < min(length, self.context_length):
            num_rows, device = min(max(length, 2 * num_rows), self.context_length), self.cosine.device
            with torch.inference_mode(False):  # else training could not use what generating made
                self.cosine, self.signed_sine = (table.to(device) for table in self._tables(num_rows))

    def _tables(self, num_rows: int) -> tuple[Float[Tensor, "position d_head"], Float[Tensor, "position d_head"]]:
        frequencies = rotary_frequencies(self.d_head, self.theta, self.scaling)
        angles = torch.outer(torch.arange(num_rows, dtype=torch.float64, device="cpu"), frequencies)
        # (x1, x2) becomes (x1 cos - x2 sin, x2 cos + x1 sin): rolled by half, the first half takes the minus.
        return angles.cos().repeat(1, 2).float(), torch.cat([-angles.sin(), angles.sin()], dim=-1).float()

    def _apply(self, fn, recurse: bool = True) -> "RotaryPositions":
        """Follow `.to()` to another device, never to another number type: a cast would round the angles."""
        tables = self.cosine, self.signed_sine
        super()._apply(fn, recurse)
        tables = self._tables(len(self.cosine)) if tables[0].is_meta else tables
        self.cosine, self.signed_sine = (table.to(self.cosine.device) for table in tables)
        return self

    def forward(
        self, x: Float[Tensor, "*batch position d_head"], positions: Int[Tensor, "*#batch position"] | None = None
    ) -> Float[Tensor, "*batch position d_head"]:
        """Turn the vector at each place by that place's position.

        Args:
            x: Queries or keys.
            positions: Absolute positions, broadcast over the leading axes of x. Default: 0, 1, 2, ...
        """
        length = x.shape[-2]
        if positions is None and length <= self.context_length:
            self.reach(length)
            cosine, signed_sine = self.cosine[:length], self.signed_sine[:length]
        else:
            positions = torch.arange(length, device=x.device) if positions is None else positions
            if len(self.cosine) < self.context_length and not torch.compiler.is_compiling():
                can_look = positions.is_cpu and positions.numel()  # on an accelerator, looking is waiting
                self.reach(int(positions.max()) + 1 if can_look else self.context_length)
            cosine, signed_sine = (look_up(positions, table, "position") for table in (self.cosine, self.signed_sine))
        # In float32, as the tables are. Of four ways to write it, the one whose compiled bfloat16 gradients are finite
        # on the CPU (docs/log.md).
        return (x * cosine + x.roll(self.d_head // 2, -1) * signed_sine).to(x.dtype)
