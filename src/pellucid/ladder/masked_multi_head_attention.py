"""Rung 8: heads that fill the model's width, and a projection that mixes them.

In: the residual stream.  Out: what attention adds to it, of the same width.  Used by: char_gpt.
Read next: split_heads.py, the same function in one matrix product a role.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.errors import ConfigError
from pellucid.ladder.masked_attention import MaskedAttention


class MaskedMultiHeadAttention(nn.Module):
    """[head_1(x) | ... | head_n(x)] W_out^T + b, with n = d_model // d_head heads, and dropout on the result.

    Side by side, n heads of width d_head are d_model wide again, as wide as what came in, so the result can be added
    to it. But so far each head's findings lie in features of their own. The output projection is where they meet: every
    feature that leaves may draw on every head.

    Args:
        d_model: Features of the residual stream.
        d_head: Features of one head.
        context_length: The longest sequence that may come.
        dropout: Share of attention weights, and of the projection's outputs, dropped while training.

    Raises:
        ConfigError: if d_head does not divide d_model.
        ShapeError: if a sequence is longer than context_length.

    Source: Vaswani et al. 2017, section 3.2.2.

    Next rung: a list of heads is a loop of small products. Heads split out of one large product are quicker.

    Example:
        >>> attention = MaskedMultiHeadAttention(d_model=64, d_head=16)
        >>> len(attention.heads), attention(torch.randn(2, 10, 64)).shape
        (4, torch.Size([2, 10, 64]))
    """

    def __init__(self, d_model: int, d_head: int, context_length: int = 64, dropout: float = 0.4) -> None:
        super().__init__()
        if d_model % d_head != 0:
            raise ConfigError(
                "d_head to divide d_model",
                came=f"d_model={d_model} and d_head={d_head}",
                remedy="choose a d_head that divides d_model",
            )
        num_heads = d_model // d_head
        self.heads = nn.ModuleList(MaskedAttention(d_model, d_head, context_length, dropout) for _ in range(num_heads))
        self.out_proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "*batch position d_model"]) -> Float[Tensor, "*batch position d_model"]:
        """Give each position what its heads found, mixed."""
        joined = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.dropout(self.out_proj(joined))
