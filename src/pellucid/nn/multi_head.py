"""Causal multi-head self-attention: every position reads from itself and those before it, several times over.

    x ──query_key_value──▶ q │ k │ v ──split into heads──▶ [q/k norm] ──▶ [turn q, k] ──▶ attention ──merge──▶ output

    multi-head            grouped-query         multi-query           4 query heads with
    q q q q               q q q q               q q q q               4, 2 and 1 key-value heads
    │ │ │ │               └┬┘ └┬┘               └─┴┬┴─┘
    k k k k               k   k                    k

In: vectors.  Out: vectors.  Used by: block.  Read next: block.py.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pellucid.errors import ShapeError
from pellucid.model_config import ModelConfig
from pellucid.nn.attention import causal_mask, fused_attention, scaled_dot_product_attention
from pellucid.nn.kv_cache import LayerCache
from pellucid.nn.linear import Linear, linear_std, truncated_normal_
from pellucid.nn.norms import RMSNorm
from pellucid.nn.rope import RotaryPositions


def make_rotary(config: ModelConfig, layer: int = 0) -> RotaryPositions | None:
    """The turning that config names for this layer; a local layer may have a theta of its own, unstretched."""
    if config.positions != "rope":
        return None
    if config.layer_is_local(layer) and config.rope_theta_local is not None:
        return RotaryPositions(config.d_head, config.context_length, config.rope_theta_local)
    return RotaryPositions(config.d_head, config.context_length, config.rope_theta, config.rope_scaling)


class CausalMultiHeadAttention(nn.Module):
    """Multi-head self-attention in which no position sees a later one.

    Queries, keys and values of all heads are one matrix and one product: rows q | k | v of `query_key_value.weight`,
    within each the heads in order. Key head h serves query heads h*group ... h*group + group - 1.

    Args:
        config: Sizes and choices.
        layer: Its number, from 0 at the input; `config.layer_pattern` may make it local.
        rotary: The turning of queries and keys, shared between layers. Default: made here if config asks for rope.

    Source: Vaswani et al. 2017, section 3.2.2; grouped queries: Ainslie et al. 2023; q/k norm: Henry et al. 2020.

    Example:
        >>> attention = CausalMultiHeadAttention(ModelConfig(d_model=64, num_heads=4, num_kv_heads=2))
        >>> attention(torch.ones(1, 5, 64)).shape
        torch.Size([1, 5, 64])
    """

    def __init__(self, config: ModelConfig, layer: int = 0, rotary: RotaryPositions | None = None) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads, self.d_head = config.num_heads, config.num_kv_heads, config.d_head
        self.scale, self.dropout = config.attention_scale, config.dropout
        self.window = config.window if config.layer_is_local(layer) else None
        self.fused = True
        self.written_out: Callable[..., Tensor] = scaled_dot_product_attention  # training may set another way
        self.rotary = rotary or make_rotary(config, layer)

        d_query, d_key = config.num_heads * config.d_head, config.num_kv_heads * config.d_head
        self.slices = (d_query, d_key, d_key)
        self.query_key_value = Linear(config.d_model, sum(self.slices), config.qkv_bias)
        for part in self.query_key_value.weight.data.split(self.slices):  # each begins as a matrix of its own would
            truncated_normal_(part, linear_std(config.d_model, part.shape[0]))
        self.output = Linear(d_query, config.d_model, config.attention_output_bias)

        self.qk_norm, self.query_norm, self.key_norm = config.qk_norm, None, None
        if config.qk_norm != "none":
            widths = (d_query, d_key) if config.qk_norm == "projection" else (config.d_head, config.d_head)
            self.query_norm, self.key_norm = (RMSNorm(d, config.norm_epsilon, config.norm_offset) for d in widths)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        *,
        positions: Int[Tensor, "*#batch query"] | None = None,
        mask: Bool[Tensor, "*#batch query key"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Attend.

        Args:
            x: One vector per position.
            positions: Absolute positions for rope. Default: 0, 1, 2, ...
            mask: True = may attend, the causal rule included. Default: causal, within the window.
            cache: Keys and values of earlier positions. With it go a mask, positions, and one batch axis.

        Raises:
            ShapeError: if a cache comes without a mask or positions, which it cannot know.
        """
        query, key, value = self.project(x, positions)
        if cache is not None:
            if positions is None or (mask is None and any(cache.lengths)):
                raise ShapeError(
                    "a mask and positions beside a cache", came="none", remedy="let TransformerLM make them"
                )
            key, value = cache.write(key, value)
        attended = self._attend(query, self.share_keys(key), self.share_keys(value), mask)
        return self.output(attended.transpose(-3, -2).flatten(-2))

    def project(
        self, x: Float[Tensor, "*batch query d_model"], positions: Int[Tensor, "*#batch query"] | None = None
    ) -> tuple[
        Float[Tensor, "*batch head query d_head"],
        Float[Tensor, "*batch kv_head query d_head"],
        Float[Tensor, "*batch kv_head query d_head"],
    ]:
        """Queries, keys and values by head: normed and turned, ready to be compared."""
        query, key, value = self.query_key_value(x).split(self.slices, dim=-1)
        if self.qk_norm == "projection":
            query, key = self.query_norm(query), self.key_norm(key)
        query, key, value = (part.unflatten(-1, (-1, self.d_head)).transpose(-3, -2) for part in (query, key, value))
        if self.qk_norm == "head":
            query, key = self.query_norm(query), self.key_norm(key)
        if self.rotary is not None:
            by_head = None if positions is None else positions.unsqueeze(-2)
            query, key = self.rotary(query, by_head), self.rotary(key, by_head)
        return query, key, value

    def share_keys(self, x: Float[Tensor, "*batch kv_head key d_head"]) -> Float[Tensor, "*batch head key d_head"]:
        """Each key or value head once for every query head that reads it."""
        group = self.num_heads // self.num_kv_heads
        return x if group == 1 else x.repeat_interleave(group, dim=-3)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        how = {"scale": self.scale, "dropout": self.dropout if self.training else 0.0}
        if mask is None and self.window is None and self.fused:
            return fused_attention(query, key, value, causal=True, **how)
        if mask is None:
            places = torch.arange(query.shape[-2], dtype=torch.int32, device=query.device)  # half as wide, less to do
            mask = causal_mask(places, key.shape[-2], self.window)
        attend = fused_attention if self.fused else self.written_out
        return attend(query, key, value, mask.unsqueeze(-3), **how)
