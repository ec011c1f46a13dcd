"""Rung 10: a small GPT over characters, spelled out in one file.

Token and position become a vector; a few blocks each let positions speak to one another (attention) and then think
alone (feed-forward), always by adding to the vector that travels through; a last norm and a linear layer turn it into a
score for every character that could come next.

In: token ids.  Out: logits.  Used by: learners; `presets.char_gpt` is the same function, built from pellucid.nn.
Read next: pellucid/nn/linear.py, where the parts begin that torch lends us here; or lessons.py.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.ladder.causal_attention import check_length
from pellucid.ladder.masked_multi_head_attention import MaskedMultiHeadAttention


class FeedForward(nn.Module):
    """dropout(W_down gelu(W_up x + b_up) + b_down): four times as wide, a bend, and back.

    Attention mixes positions, but what it mixes is linear in the values. Here each position, alone, goes through a
    layer that is not: gelu(x) = x * Phi(x), where Phi(x) is the share of a normal distribution below x. It is a smooth
    form of max(x, 0).

    Args:
        d_model: Features of the residual stream.
        dropout: Share of the outputs dropped while training.

    Source: Vaswani et al. 2017, section 3.3 (with ReLU); Hendrycks and Gimpel 2016, section 2 (GELU, exact here; GPT-2
    uses the approximation by tanh).

    Example:
        >>> FeedForward(d_model=64)(torch.randn(2, 10, 64)).shape
        torch.Size([2, 10, 64])
    """

    def __init__(self, d_model: int, dropout: float = 0.4) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, 4 * d_model)  # 4: Vaswani et al. 2017, section 3.3, and nearly everyone since
        self.down = nn.Linear(4 * d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Give each position what it thinks of, alone."""
        return self.dropout(self.down(functional.gelu(self.up(x))))


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)).

    Both parts add to their input and never replace it, so a gradient reaches every block through the sums alone. The
    norm stands before each part (pre-norm), which leaves that path untouched. It must be `x = x + f(x)`: written
    `x += f(x)` it would overwrite what the norm still needs for its gradient (`lessons.residual_in_place`).

    Args:
        d_model: Features of the residual stream.
        d_head: Features of one head.
        context_length: The longest sequence that may come.
        dropout: Share dropped while training, in each of the places that drop.

    Source: Radford et al. 2019 (GPT-2), section 2.3; Xiong et al. 2020 on why the norm stands before.

    Example:
        >>> Block(d_model=64, d_head=16)(torch.randn(2, 10, 64)).shape
        torch.Size([2, 10, 64])
    """

    def __init__(self, d_model: int, d_head: int, context_length: int = 64, dropout: float = 0.4) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)  # epsilon 1e-5, torch's default, as in GPT-2
        self.attention = MaskedMultiHeadAttention(d_model, d_head, context_length, dropout)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, dropout)

    def forward(self, x: Float[Tensor, "*batch position d_model"]) -> Float[Tensor, "*batch position d_model"]:
        """Let the positions speak to one another, then think alone."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class CharGPT(nn.Module):
    """head(norm(block_n(... block_1(token[ids] + position[0, 1, 2, ...])))).

    Attention alone cannot tell order: shuffle what a query may see, and its context stays the same. So each place in
    the sequence has a learned vector, added to the token's. Dropout acts on attention weights, on the attention's
    projection and on the feed-forward part.

    Args:
        vocab_size: How many different tokens there are.
        d_model: Features of the residual stream.
        d_head: Features of one head; d_model // d_head heads fill the width.
        num_layers: How many blocks.
        context_length: The longest sequence that may come.
        dropout: Share dropped while training.

    Raises:
        ConfigError: if d_head does not divide d_model.
        ShapeError: if a sequence is longer than context_length.

    Source: Radford et al. 2018 and 2019 (GPT, GPT-2), made small; unlike GPT-2, the head has weights and a bias of its
    own, queries, keys and values have no bias, and nothing is dropped right after the embeddings.

    Next: `presets.char_gpt` builds the same function from `pellucid.nn`, and a test carries the weights across.

    Example:
        >>> model = CharGPT(vocab_size=65)
        >>> logits = model(torch.tensor([[5, 0, 64]]))
        >>> logits.shape  # for each position, a score for each of the 65 characters that could come next
        torch.Size([1, 3, 65])
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 64,
        d_head: int = 16,
        num_layers: int = 2,
        context_length: int = 64,
        dropout: float = 0.4,
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, d_head, context_length, dropout) for _ in range(num_layers))
        self.final_norm = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, token_ids: Int[Tensor, "*batch position"]) -> Float[Tensor, "*batch position vocab"]:
        """Score, at each position, every token that could come next: logits, before any softmax."""
        length = token_ids.shape[-1]
        check_length(length, context_length=self.position_embedding.num_embeddings)
        positions = torch.arange(length, device=token_ids.device)
        x = self.token_embedding(token_ids) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.final_norm(x))
