"""The token embedding: one vector per token id.

In: token ids.  Out: vectors.  Used by: positions, transformer.  Read next: softmax.py.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.nn.linear import truncated_normal_


class Embedding(nn.Module):
    """Row `token_ids` of a table.

    Looking a row up equals multiplying a one-hot vector by the table; the product is never made.

    Args:
        vocab_size: Rows.
        d_model: Width of a row.
        device: Where the table lives.
        dtype: Its number type.

    Raises:
        IndexError: from torch, if an id is negative or not below vocab_size.

    Source: Stanford CS336 assignment 1, section 3.3: N(0, 1) truncated at 3 standard deviations.

    Example:
        >>> table = Embedding(10, 4)
        >>> ids = torch.tensor([3, 1])
        >>> one_hot = functional.one_hot(ids, 10).float()
        >>> torch.equal(table(ids), one_hot @ table.weight)
        True
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model, device=device, dtype=dtype))
        truncated_normal_(self.weight.data, std=1.0)

    def forward(self, token_ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Look rows up."""
        # weight[token_ids] is the same, but takes -1 for the last row without a word.
        return functional.embedding(token_ids, self.weight)
