"""Rung 9: heads split out of one projection.

In: vectors, one a position.  Out: context vectors, one a position, mixed over the heads.  Used by: learners.
Read next: pellucid/nn/multi_head.py, where query, key and value become one product too, and torch's layers our own;
or char_gpt.py, which puts attention to work.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.errors import ConfigError
from pellucid.ladder.causal_attention import check_length


class SplitHeads(nn.Module):
    """MaskedMultiHeadAttention without a loop: one product for all heads' queries, one for keys, one for values.

    Stack the heads' matrices and multiply once: features 0 to d_head - 1 of the result are head 0's, the next d_head
    are head 1's, and so on. `view` cuts that axis in two, and `transpose` moves the heads before the positions, where
    they are one more batch axis that the rest of the computation need not know about:

        (batch, position, d_out) -> (batch, position, head, d_head) -> (batch, head, position, d_head)

    Afterwards the same two steps are taken back. No number changes; only fewer and larger products are made.

    Args:
        d_in: Features of an input vector.
        d_out: Features of a context vector: num_heads heads together.
        context_length: The longest sequence that may come.
        dropout: Share of attention weights dropped while training.
        num_heads: How many heads; it divides d_out.
        qkv_bias: Whether the three layers add a bias.

    Raises:
        ConfigError: if num_heads does not divide d_out.
        ShapeError: if a sequence is longer than context_length.

    Source: Raschka 2024, section 3.6.2 (its MultiHeadAttention).

    Next rung: `pellucid.nn.CausalMultiHeadAttention` makes one product of the three, lets heads share keys and values,
    turns queries and keys by their position, and keeps a cache.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> batch = torch.stack([worked_example(), worked_example()])
        >>> _ = torch.manual_seed(123)
        >>> SplitHeads(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2)(batch)[0, 0].detach()
        tensor([0.3190, 0.4858])
    """

    mask: Tensor

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ConfigError(
                "num_heads to divide d_out",
                came=f"d_out={d_out} and num_heads={num_heads}",
                remedy="choose a num_heads that divides d_out",
            )
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", future)

    def split(self, joined: Float[Tensor, "*batch position d_out"]) -> Float[Tensor, "*batch head position d_head"]:
        """Cut the features into heads and move the heads before the positions."""
        return joined.view(*joined.shape[:-1], self.num_heads, self.d_head).transpose(-3, -2)

    def forward(self, inputs: Float[Tensor, "*batch position d_in"]) -> Float[Tensor, "*batch position d_out"]:
        """Give each position what its heads found, mixed."""
        length = inputs.shape[-2]
        check_length(length, context_length=len(self.mask))
        queries = self.split(self.W_query(inputs))
        keys = self.split(self.W_key(inputs))
        values = self.split(self.W_value(inputs))

        scores = einsum(queries, keys, "... query d_head, ... key d_head -> ... query key")
        scores = scores.masked_fill(self.mask[:length, :length], -torch.inf)
        weights = torch.softmax(scores / self.d_head**0.5, dim=-1)
        weights = self.dropout(weights)
        contexts = einsum(weights, values, "... query key, ... key d_head -> ... query d_head")
        # After the transpose a position's features no longer lie side by side in memory: reshape copies, view cannot.
        joined = contexts.transpose(-3, -2).reshape(*inputs.shape[:-1], self.num_heads * self.d_head)
        return self.out_proj(joined)
