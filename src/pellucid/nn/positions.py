"""Learned positions: one vector per place in the sequence, added to the token's.

In: positions.  Out: vectors.  Used by: transformer.  Read next: rope.py.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.errors import ShapeError
from pellucid.nn.embedding import Embedding


def check_reach(positions: Int[Tensor, "*batch position"], context_length: int) -> None:
    """Refuse positions outside a table, by both numbers, before torch refuses them by an index alone.

    A compiled graph and an accelerator cannot look at values without stopping; the caller checks lengths there.

    Raises:
        ShapeError: if a position is negative or not below context_length.
    """
    if torch.compiler.is_compiling() or positions.device.type != "cpu" or positions.numel() == 0:
        return
    lowest, highest = int(positions.min()), int(positions.max())
    if lowest < 0 or highest >= context_length:
        raise ShapeError(
            f"positions from 0 to {context_length - 1} (context_length={context_length})",
            came=f"position {lowest if lowest < 0 else highest}",
            remedy="shorten the sequence, or use a model with a longer context_length",
        )


class LearnedPositions(Embedding):
    """Row `positions` of a table of context_length rows.

    Args:
        context_length: Rows; no position may reach past it.
        d_model: Width of a row.

    Raises:
        ShapeError: if a position lies outside the table.

    Source: Gehring et al. 2017, section 3.1; GPT-2 uses it.
    """

    def forward(self, token_ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Look the rows of these positions up."""
        check_reach(token_ids, self.weight.shape[0])
        return super().forward(token_ids)
