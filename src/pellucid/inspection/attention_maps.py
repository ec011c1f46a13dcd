"""Attention maps: which earlier tokens each head of each layer reads from, and how much of each.

The fused kernel never makes the weights, so the model runs once by the written-out reference, whose weights are kept as
they are multiplied with the values: what is shown is what was used, also where a mask is wrong.

In: a model, ids.  Out: `attention_maps`, `habit`.  Used by: the report.  Read next: ../report/.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.inspection.reading import reading
from pellucid.nn import CausalMultiHeadAttention, TransformerLM, attention_weights

MOSTLY = 0.5  # of a head's attention: more than all the rest together


@dataclass(frozen=True)
class AttentionMap:
    """What one layer did with a text. Row i of a head's weights is what token i read; a row sums to 1.

    Attributes:
        layer: Its number, from 0 at the input.
        weights: How much of each token's value each token took, [head, query, key].
        values: What there was to take, as each head reads it: `weights @ values` is what attention gave.
    """

    layer: int
    weights: Float[Tensor, "head query key"]
    values: Float[Tensor, "head key d_head"]


def attention_maps(model: TransformerLM, token_ids: Int[Tensor, " position"]) -> list[AttentionMap]:
    """The maps of every layer for one text; the model is left as it was.

    Args:
        model: In any mode.
        token_ids: At most as many as its context.

    Returns:
        One for each layer. A layer whose attention is not ours, a part of somebody's own, is left out: nobody can know
        what its weights are, or whether it has any.

    Raises:
        ShapeError: if the text is longer than the context.

    Example:
        >>> import torch
        >>> from pellucid.model_config import ModelConfig
        >>> model = TransformerLM(ModelConfig(vocab_size=10, d_model=64, num_heads=4, num_layers=2))
        >>> [(one.layer, one.weights.shape) for one in attention_maps(model, torch.tensor([1, 2, 3]))]
        [(0, torch.Size([4, 3, 3])), (1, torch.Size([4, 3, 3]))]
    """
    maps: list[AttentionMap] = []
    with reading(model, fused=False), _kept(model, maps):
        model.hidden_states(token_ids[None].to(model.token_embedding.weight.device))
    return maps


def habit(weights: Float[Tensor, "query key"]) -> tuple[str, float]:
    """What a head mostly reads: "itself", "the token before", "the first token", or "many"; and how much of it.

    Example:
        >>> import torch
        >>> habit(torch.tensor([[1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0, 0.8, 0.2, 0], [0, 0, 0.7, 0.3]]))
        ('the token before', 0.75)
    """
    rows = weights[2:]  # before there are three tokens, the first and the one before are the same
    if not len(rows):
        return "many", 0.0
    shares = {
        "itself": weights.diagonal()[2:],
        "the token before": weights.diagonal(-1)[1:],
        "the first token": rows[:, 0],
    }
    name, share = max(((name, float(found.mean())) for name, found in shares.items()), key=lambda pair: pair[1])
    return (name if share > MOSTLY else "many", round(share, 4))


def _attend_and_keep(
    layer: int,
    maps: list[AttentionMap],
    query: Float[Tensor, "1 head query d_head"],
    key: Float[Tensor, "1 head key d_head"],
    value: Float[Tensor, "1 head key d_head"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "1 head query d_head"]:
    """`scaled_dot_product_attention`, in its two lines."""
    weights = attention_weights(query, key, mask, scale=scale)
    maps.append(AttentionMap(layer, weights[0], value[0]))
    return weights.to(value.dtype) @ value


@contextmanager
def _kept(model: TransformerLM, maps: list[AttentionMap]) -> Generator[None]:
    """While the block lasts, the reference writes its weights down."""
    attentions = [
        (layer, block.attention)
        for layer, block in enumerate(model.blocks)
        if isinstance(block.attention, CausalMultiHeadAttention)
    ]
    before = [attention.written_out for _, attention in attentions]
    for layer, attention in attentions:
        attention.written_out = partial(_attend_and_keep, layer, maps)
    try:
        yield
    finally:
        for (_, attention), was in zip(attentions, before, strict=True):
            attention.written_out = was
