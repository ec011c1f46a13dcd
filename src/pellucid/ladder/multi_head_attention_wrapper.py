"""Rung 6: several causal heads side by side.

In: vectors, one a position.  Out: the heads' context vectors, joined.  Used by: learners.
Read next: masked_attention.py, where a head becomes a part of a model.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.ladder.causal_attention import CausalAttention


class MultiHeadAttentionWrapper(nn.Module):
    """[head_1(X) | head_2(X) | ...]: num_heads causal heads, each with matrices of its own.

    A softmax row has one budget of 1 to spend, so a head that looks at the verb looks less at the subject. Heads share
    nothing but their input: one may follow the verb while another follows the subject, and what they found stands side
    by side in the output, num_heads * d_out features wide.

    Args:
        d_in: Features of an input vector.
        d_out: Features of one head's context vectors.
        context_length: The longest sequence that may come.
        dropout: Share of attention weights dropped while training.
        num_heads: How many heads.
        qkv_bias: Whether the heads' layers add a bias.

    Source: Vaswani et al. 2017, section 3.2.2, without its output projection; Raschka 2024, section 3.6.1.

    Next rung: a head again, with the sizes and defaults it has inside a model.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> batch = torch.stack([worked_example(), worked_example()])
        >>> _ = torch.manual_seed(123)
        >>> heads = MultiHeadAttentionWrapper(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2)
        >>> heads(batch)[0, 0].detach()
        tensor([-0.4519,  0.2216,  0.4772,  0.1063])
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, inputs: Float[Tensor, "*batch position d_in"]) -> Float[Tensor, "*batch position d_model"]:
        """Give each position the context vectors that all heads found, joined."""
        return torch.cat([head(inputs) for head in self.heads], dim=-1)
