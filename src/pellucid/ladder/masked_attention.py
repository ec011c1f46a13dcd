"""Rung 7: one masked head, as it stands in a model.

In: the residual stream.  Out: one head's context vectors.  Used by: masked_multi_head_attention.
Read next: masked_multi_head_attention.py, which joins such heads and brings them back to the stream's width.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.ladder.causal_attention import check_length


class MaskedAttention(nn.Module):
    """The function of CausalAttention, from the width of a model down to the width of a head.

    Two things are new, and neither is in the numbers. The sizes have a model's names: vectors d_model wide travel
    through the whole model, and a head works in d_head of its own. And the mask is told the other way round: `tril`
    is True where a query may attend, on and below the diagonal, and scores are filled where it is not. The same seed
    gives the same weights as CausalAttention(d_model, d_head, context_length, dropout).

    Args:
        d_model: Features of the residual stream.
        d_head: Features of this head's queries, keys and values.
        context_length: The longest sequence that may come.
        dropout: Share of attention weights dropped while training.

    Raises:
        ShapeError: if a sequence is longer than context_length.

    Source: Vaswani et al. 2017, section 3.2.3 (masking the decoder's self-attention).

    Next rung: as many heads as fit into d_model, and a layer that lets them speak to one another.

    Example:
        >>> MaskedAttention(d_model=64, d_head=16)(torch.randn(2, 10, 64)).shape
        torch.Size([2, 10, 16])
    """

    tril: Tensor

    def __init__(self, d_model: int, d_head: int, context_length: int = 64, dropout: float = 0.4) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_model, d_head, bias=False)
        self.W_key = nn.Linear(d_model, d_head, bias=False)
        self.W_value = nn.Linear(d_model, d_head, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("tril", torch.ones(context_length, context_length, dtype=torch.bool).tril())

    def forward(self, x: Float[Tensor, "*batch position d_model"]) -> Float[Tensor, "*batch position d_head"]:
        """Give each position its context vector, made of itself and what came before."""
        length = x.shape[-2]
        check_length(length, context_length=len(self.tril))
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)

        scores = einsum(queries, keys, "... query d_head, ... key d_head -> ... query key") / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(self.tril[:length, :length] == 0, -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return einsum(weights, values, "... query key, ... key d_head -> ... query d_head")
