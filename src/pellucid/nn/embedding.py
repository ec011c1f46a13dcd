"""The token embedding: one vector per token id.

In: token ids.  Out: vectors.  Used by: positions, rope, transformer.  Read next: softmax.py.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.errors import ShapeError
from pellucid.nn.linear import Device, DType, truncated_normal_


def look_up(
    ids: Int[Tensor, "*batch"], table: Float[Tensor, "row column"], kind: Literal["token id", "position"] = "token id"
) -> Float[Tensor, "*batch column"]:
    """Rows `ids` of a table.

    Plain indexing gives the same rows, but takes -1 for the last one without a word.

    Raises:
        ShapeError: naming both numbers, if the table lacks a row. An accelerator checks nothing: look before you call.

    Example:
        >>> look_up(torch.tensor([2, 0]), torch.tensor([[0.0], [10.0], [20.0]]))
        tensor([[20.],
                [ 0.]])
    """
    try:
        return functional.embedding(ids, table)
    except IndexError:
        lowest, highest = int(ids.min()), int(ids.max())
    size, remedy = {
        "token id": ("vocab_size", "use the model's own tokenizer, or a model with a larger vocab_size"),
        "position": ("context_length", "shorten the sequence, or use a model with a longer context_length"),
    }[kind]
    raise ShapeError(
        f"{kind}s from 0 to {len(table) - 1} ({size}={len(table)})",
        came=f"{kind} {lowest if lowest < 0 else highest}",
        remedy=remedy,
    )


class Embedding(nn.Module):
    """Row `token_ids` of a table.

    Looking a row up equals multiplying a one-hot vector by the table; the product is never made.

    Args:
        vocab_size: Rows.
        d_model: Width of a row.
        device: Where the table lives.
        dtype: Its number type.

    Raises:
        ShapeError: if an id is negative or not below vocab_size.

    Source: Stanford CS336 assignment 1, section 3.3: N(0, 1) truncated at 3 standard deviations.

    Example:
        >>> table = Embedding(10, 4)
        >>> ids = torch.tensor([3, 1])
        >>> one_hot = functional.one_hot(ids, 10).float()
        >>> torch.equal(table(ids), one_hot @ table.weight)
        True
    """

    def __init__(self, vocab_size: int, d_model: int, device: Device = None, dtype: DType = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model, device=device, dtype=dtype))
        truncated_normal_(self.weight.data, std=1.0)

    def forward(self, token_ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Look rows up."""
        return look_up(token_ids, self.weight)
