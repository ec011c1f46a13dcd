"""Learned positions: one vector per place in the sequence, added to the token's.

In: positions.  Out: vectors.  Used by: transformer.  Read next: rope.py.
"""

from jaxtyping import Float, Int
from torch import Tensor

from pellucid.nn.embedding import Embedding, look_up
from pellucid.nn.linear import Device, DType


class LearnedPositions(Embedding):
    """Row `positions` of a table of context_length rows.

    Args:
        context_length: Rows; no position may reach past it.
        d_model: Width of a row.
        device: Where the table lives.
        dtype: Its number type.

    Raises:
        ShapeError: if a position lies outside the table.

    Source: Gehring et al. 2017, section 3.1; GPT-2 uses it.

    Example:
        >>> import torch
        >>> LearnedPositions(8, 4)(torch.arange(8)).shape
        torch.Size([8, 4])
    """

    def __init__(self, context_length: int, d_model: int, device: Device = None, dtype: DType = None) -> None:
        super().__init__(context_length, d_model, device, dtype)

    def forward(self, positions: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Look the rows of these positions up."""
        return look_up(positions, self.weight, "position")
