"""Rung 4: the same self-attention, its matrices as linear layers.

In: vectors, one a position.  Out: context vectors, one a position.  Used by: learners.
Read next: causal_attention.py, which hides the future.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn


class SelfAttentionV2(nn.Module):
    """softmax(Q K^T / sqrt(d_out)) V with Q, K, V from `torch.nn.Linear`.

    A linear layer keeps its weight as (d_out, d_in) and computes x W^T + b. So the weights of this rung are those of
    SelfAttentionV1 transposed, and with them both rungs are one function. What the layer adds is a bias, if asked for,
    and a better start: uniform within 1 / sqrt(d_in) on both sides of 0, where torch.rand is never negative.

    Args:
        d_in: Features of an input vector.
        d_out: Features of queries, keys, values and so of the context vectors.
        qkv_bias: Whether the three layers add a bias.

    Source: Raschka 2024, section 3.4.2 (its SelfAttention_v2; the layers are made in the order query, key, value).

    Next rung: a mask, so that no position sees what comes after it.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> _ = torch.manual_seed(789)
        >>> SelfAttentionV2(d_in=3, d_out=2)(worked_example())[0].detach()
        tensor([-0.0739,  0.0713])
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, inputs: Float[Tensor, "*batch position d_in"]) -> Float[Tensor, "*batch position d_out"]:
        """Give each position its context vector."""
        queries = self.W_query(inputs)
        keys = self.W_key(inputs)
        values = self.W_value(inputs)

        scores = einsum(queries, keys, "... query d_out, ... key d_out -> ... query key")
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return einsum(weights, values, "... query key, ... key d_out -> ... query d_out")
