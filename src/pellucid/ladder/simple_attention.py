"""Rung 2: attention without weights, as matrices.

All scores at once are one product, all mixtures at once another. The axes carry names, so that each line can be read
as a sentence: a name on both sides of the arrow is kept, a name that is missing on the right is summed over.

In: vectors, one a position.  Out: context vectors, one a position.  Used by: learners.
Read next: self_attention_v1.py, where queries, keys and values part ways and can be learned.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor


def simple_attention(inputs: Float[Tensor, "*batch position d_in"]) -> Float[Tensor, "*batch position d_in"]:
    """softmax(X X^T) X: each position becomes a mixture of all positions, in proportion to their likeness.

    The same tensor plays three parts. As *query* it asks, as *key* it is compared with, and what it gives when it is
    chosen is its *value*.

    Args:
        inputs: A vector for each position, of as many sequences as you like.

    Returns:
        The context vector of each position.

    Source: Raschka 2024, section 3.3.2.

    Next rung: nothing here can be learned. A matrix for each of the three parts changes that.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> simple_attention(worked_example())[:2]
        tensor([[0.4421, 0.5931, 0.5790],
                [0.4419, 0.6515, 0.5683]])
    """
    scores = einsum(inputs, inputs, "... query d_in, ... key d_in -> ... query key")
    weights = torch.softmax(scores, dim=-1)
    return einsum(weights, inputs, "... query key, ... key d_in -> ... query d_in")
