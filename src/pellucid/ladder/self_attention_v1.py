"""Rung 3: self-attention that can learn, with its three matrices in the open.

In: vectors, one a position.  Out: context vectors, one a position.  Used by: learners.
Read next: self_attention_v2.py, where the matrices become linear layers.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn


class SelfAttentionV1(nn.Module):
    """Q = X W_query, K = X W_key, V = X W_value, and softmax(Q K^T / sqrt(d_out)) V.

    Three matrices give a vector three roles: what it looks for (query), what it can be found by (key), and what it
    has to say (value). A word may now look for words unlike itself, and scores need not be symmetric.

    A score is a sum of d_out products. If each has variance 1, the sum has variance d_out, and softmax of large numbers
    picks one position and passes hardly any gradient to the others. Dividing by sqrt(d_out) brings the variance back
    to 1: see `lessons.variance_of_scores` and `lessons.saturation`.

    Args:
        d_in: Features of an input vector.
        d_out: Features of queries, keys, values and so of the context vectors.

    Source: Vaswani et al. 2017, equation 1; Raschka 2024, section 3.4 (this is its SelfAttention_v1: weights drawn by
    torch.rand, in the order query, key, value, used as x @ W).

    Next rung: linear layers, which start from better numbers than torch.rand and may add a bias.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> _ = torch.manual_seed(123)
        >>> SelfAttentionV1(d_in=3, d_out=2)(worked_example())[0].detach()
        tensor([0.2996, 0.8053])
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, inputs: Float[Tensor, "*batch position d_in"]) -> Float[Tensor, "*batch position d_out"]:
        """Give each position its context vector."""
        queries = inputs @ self.W_query
        keys = inputs @ self.W_key
        values = inputs @ self.W_value

        scores = einsum(queries, keys, "... query d_out, ... key d_out -> ... query key")
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return einsum(weights, values, "... query key, ... key d_out -> ... query d_out")
