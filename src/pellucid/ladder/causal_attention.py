"""Rung 5: causal attention, which sees the past and the present but never the future.

In: vectors, one a position.  Out: context vectors, one a position.
Used by: multi_head_attention_wrapper, and `check_length` by every later rung.
Read next: multi_head_attention_wrapper.py, which looks several ways at once.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.errors import ShapeError


def check_length(length: int, context_length: int) -> None:
    """Refuse a sequence that is longer than the mask was made for, by both numbers.

    Raises:
        ShapeError: if length exceeds context_length.

    Example:
        >>> check_length(6, context_length=6)
        >>> check_length(7, context_length=6)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        pellucid.errors.ShapeError: Expected at most 6 positions (context_length=6), but got 7 positions: shorten ...
    """
    if length > context_length:
        raise ShapeError(
            f"at most {context_length} positions (context_length={context_length})",
            came=f"{length} positions",
            remedy="shorten the sequence, or build with a larger context_length",
        )


class CausalAttention(nn.Module):
    """softmax((Q K^T with -inf above the diagonal) / sqrt(d_out)) V, with dropout on the weights.

    A model that is to predict the next token must not read it. Row i of the scores belongs to query i; every key
    j > i is its future, and gets -inf. exp(-inf) = 0, so it has no share, and the rest of the row still adds up to 1.
    Hiding after the softmax would need a second division; hiding with a large finite number lets the future leak in
    as soon as the model learns scores as large.

    `mask` keeps the textbook's name and its sense: True where a key is hidden. It is made once, for the longest
    sequence, and cut to the length of each input. Dropout sets a random share of the weights to 0 while training and
    multiplies the rest by 1 / (1 - dropout), so that the expected sum stays 1; after `eval()` it does nothing.

    Args:
        d_in: Features of an input vector.
        d_out: Features of queries, keys, values and so of the context vectors.
        context_length: The longest sequence that may come.
        dropout: Share of attention weights dropped while training.
        qkv_bias: Whether the three layers add a bias.

    Raises:
        ShapeError: if a sequence is longer than context_length.

    Source: Raschka 2024, section 3.5 (its CausalAttention).

    Next rung: one head can look one way at a time. Several, side by side, look several ways.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> batch = torch.stack([worked_example(), worked_example()])
        >>> _ = torch.manual_seed(123)
        >>> CausalAttention(d_in=3, d_out=2, context_length=6, dropout=0.0)(batch)[0, 0].detach()
        tensor([-0.4519,  0.2216])
    """

    mask: Tensor

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", future)

    def forward(self, inputs: Float[Tensor, "*batch position d_in"]) -> Float[Tensor, "*batch position d_out"]:
        """Give each position its context vector, made of itself and what came before."""
        length = inputs.shape[-2]
        check_length(length, context_length=len(self.mask))
        queries = self.W_query(inputs)
        keys = self.W_key(inputs)
        values = self.W_value(inputs)

        scores = einsum(queries, keys, "... query d_out, ... key d_out -> ... query key")
        scores = scores.masked_fill(self.mask[:length, :length], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        return einsum(weights, values, "... query key, ... key d_out -> ... query d_out")
