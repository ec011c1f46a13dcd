"""The Transformer block: attention moves information between positions, the feed-forward part works on each alone.

    pre       x + f(norm(x))            GPT-2, Llama, Qwen
    post      norm(x + f(x))            the original Transformer
    output    x + norm(f(x))            OLMo-2
    sandwich  x + norm(f(norm(x)))      Gemma 3

A variant of a part is a new file and one line in a `match` here; what is no name of ours is a part of one's own.

In: vectors.  Out: vectors.  Used by: transformer.  Read next: transformer.py.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.model_config import ModelConfig
from pellucid.nn.feed_forward import GEGLU, GeluFeedForward, Relu2FeedForward, SiluFeedForward, SwiGLU
from pellucid.nn.kv_cache import LayerCache
from pellucid.nn.multi_head import CausalMultiHeadAttention
from pellucid.nn.norms import LayerNorm, RMSNorm
from pellucid.nn.own_part import own_part
from pellucid.nn.rope import RotaryPositions


def make_norm(config: ModelConfig) -> nn.Module:
    """The norm that config names, as wide as the residual stream."""
    match config.norm:
        case "rms":
            return RMSNorm(config.d_model, config.norm_epsilon, config.norm_offset)
        case "layer":
            return LayerNorm(config.d_model, config.norm_epsilon, config.norm_bias)
        case "none":
            return nn.Identity()
        case own:
            return own_part(own, config.d_model, config.norm_epsilon)


def make_feed_forward(config: ModelConfig) -> nn.Module:
    """The feed-forward part that config names."""
    sizes = (config.d_model, config.d_ff, config.feed_forward_bias)
    match config.feed_forward:
        case "swiglu":
            return SwiGLU(*sizes)
        case "geglu":
            return GEGLU(*sizes, approximate=config.gelu)
        case "gelu":
            return GeluFeedForward(*sizes, approximate=config.gelu)
        case "silu":
            return SiluFeedForward(*sizes)
        case "relu2":
            return Relu2FeedForward(*sizes)
        case own:
            return own_part(own, *sizes)


def make_attention(config: ModelConfig, layer: int = 0, rotary: RotaryPositions | None = None) -> nn.Module:
    """The attention that config names; the model asks each for its window and whether a fused kernel may be used."""
    if config.attention == "multi-head":
        return CausalMultiHeadAttention(config, layer, rotary)
    attention = own_part(config.attention, config, layer, rotary)
    attention.fused, attention.window = True, config.window if config.layer_is_local(layer) else None
    return attention


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each added to the residual stream.

    Args:
        config: Sizes and choices.
        layer: Its number, from 0 at the input; layer_pattern may make it local.
        rotary: Shared between layers; see `CausalMultiHeadAttention`.

    Source: Vaswani et al. 2017, figure 1; the pre-norm order from Xiong et al. 2020.

    Example:
        >>> import torch
        >>> TransformerBlock(ModelConfig(d_model=64, num_heads=4))(torch.ones(1, 5, 64)).shape
        torch.Size([1, 5, 64])
    """

    def __init__(self, config: ModelConfig, layer: int = 0, rotary: RotaryPositions | None = None) -> None:
        super().__init__()
        self.placement, self.dropout = config.norm_placement, config.dropout
        before = self.placement in ("pre", "post", "sandwich")
        behind = self.placement in ("output", "sandwich")
        self.attention_norm = make_norm(config) if before else None
        self.attention = make_attention(config, layer, rotary)
        self.attention_output_norm = make_norm(config) if behind else None
        self.feed_forward_norm = make_norm(config) if before else None
        self.feed_forward = make_feed_forward(config)
        self.feed_forward_output_norm = make_norm(config) if behind else None

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        *,
        positions: Int[Tensor, "*#batch query"] | None = None,
        mask: Bool[Tensor, "*#batch query key"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Add what attention reads, then what the feed-forward part makes of it. Arguments: as the attention's."""
        attend = partial(self.attention, positions=positions, mask=mask, cache=cache)
        x = self._add(x, attend, self.attention_norm, self.attention_output_norm)
        return self._add(x, self.feed_forward, self.feed_forward_norm, self.feed_forward_output_norm)

    def _add(self, x: Tensor, part: Callable, norm: Callable | None, output_norm: Callable | None) -> Tensor:
        match self.placement:
            case "pre":
                return x + self._drop(part(norm(x)))
            case "post":
                return norm(x + self._drop(part(x)))
            case "output":
                return x + output_norm(self._drop(part(x)))
            case "sandwich":
                return x + output_norm(self._drop(part(norm(x))))

    def _drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout, self.training)
