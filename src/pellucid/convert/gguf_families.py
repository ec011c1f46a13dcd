"""The families of models that a GGUF file may hold: for each a preset, whose tensor is which of ours, and its choices.

llama.cpp's own names, alike for all families; what a family does not have is not there. Llama alone has its queries and
keys in the order of neighbours: its converter permutes them.

In: nothing.  Out: `GGUF_FAMILIES`, by general.architecture.  Used by: gguf_config.py, gguf.py.  Read next:
gguf_config.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pellucid import presets
from pellucid.convert.names import Family, PairOrder, Row
from pellucid.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class GgufFamily:
    """What a file of an architecture means."""

    architecture: str
    """The word in the file, which also begins the keys of its sizes."""
    preset: Callable[..., ModelConfig]
    weights: Family
    epsilon_key: str = "attention.layer_norm_rms_epsilon"
    stored_offset: float = 0.0
    """What the converter added to the weights of norms, and is taken off again: Gemma's 1 + w."""
    always: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ours that are so in every model of it: llama.cpp does not hear a file that says otherwise."""
    rope_scalings: tuple[str, ...] = ("linear",)
    """The kinds of scaling that llama.cpp hears in a file of it."""
    is_square: bool = False
    """Whether its heads together are always as wide as the model."""
    has_own_head: bool = False
    """Whether a tied head is written, too."""


def _layer(ours: str, theirs: str) -> tuple[Row, Row]:
    rows = (f"blocks.{{i}}.{ours}.{kind}" for kind in ("weight", "bias"))
    weight, bias = (Row(row, f"blk.{{i}}.{theirs}.{row.rpartition('.')[2]}") for row in rows)
    return weight, bias


def _query_key_value(kind: str) -> Row:
    names = (f"blk.{{i}}.attn_{part}.{kind}" for part in "qkv")
    return Row(f"blocks.{{i}}.attention.query_key_value.{kind}", *names)


_ENDS = (
    Row("token_embedding.weight", "token_embd.weight"),
    Row("final_norm.weight", "output_norm.weight"),
    Row("final_norm.bias", "output_norm.bias"),
    Row("lm_head.weight", "output.weight"),
)
_PARTS = (
    *_layer("attention.output", "attn_output"),
    *_layer("feed_forward.up", "ffn_up"),
    *_layer("feed_forward.down", "ffn_down"),
)
_SPLIT = (
    _query_key_value("weight"),
    _query_key_value("bias"),
    *_layer("feed_forward.gate", "ffn_gate"),
    *_layer("attention.query_norm", "attn_q_norm")[:1],
    *_layer("attention.key_norm", "attn_k_norm")[:1],
)
_BEFORE = (*_layer("attention_norm", "attn_norm"), *_layer("feed_forward_norm", "ffn_norm"))
_BEHIND = (
    *_layer("attention_output_norm", "post_attention_norm")[:1],
    *_layer("feed_forward_output_norm", "post_ffw_norm")[:1],
)


_ONE_REACH = {"window": None, "logit_soft_cap": None}
_NO_BIASES = {"qkv_bias": False, "attention_output_bias": False, "feed_forward_bias": False}


def _names(name: str, *rows: Row, pair_order: PairOrder = "halves") -> Family:
    return Family(name=name, pair_order=pair_order, rows=(*_ENDS, *_PARTS, *rows))


GGUF_FAMILIES: dict[str, GgufFamily] = {
    family.architecture: family
    for family in (
        GgufFamily(
            architecture="llama",
            preset=presets.llama,
            weights=_names("Llama in GGUF", *_SPLIT, *_BEFORE, pair_order="neighbours"),
            always=_ONE_REACH,
            rope_scalings=("linear", "llama3"),
        ),
        GgufFamily(
            architecture="qwen2",
            preset=presets.qwen2,
            weights=_names("Qwen2 in GGUF", *_SPLIT, *_BEFORE),
            always={**_ONE_REACH, **_NO_BIASES, "qkv_bias": True},
            is_square=True,
        ),
        GgufFamily(
            architecture="qwen3",
            preset=presets.default,
            weights=_names("Qwen3 in GGUF", *_SPLIT, *_BEFORE),
            always={**_ONE_REACH, **_NO_BIASES},
        ),
        GgufFamily(
            architecture="olmo2",
            preset=presets.olmo2,
            weights=_names("OLMo-2 in GGUF", *_SPLIT, *_BEHIND),
            always={**_ONE_REACH, **_NO_BIASES},
            is_square=True,
            has_own_head=True,
        ),
        GgufFamily(
            architecture="gemma3",
            preset=presets.gemma3,
            weights=_names("Gemma 3 in GGUF", *_SPLIT, *_BEFORE, *_BEHIND),
            stored_offset=1.0,
            always=_NO_BIASES,
        ),
        GgufFamily(
            architecture="gpt2",
            preset=presets.gpt2,
            weights=_names(
                "GPT-2 in GGUF",
                Row("position_embedding.weight", "position_embd.weight"),
                *_layer("attention.query_key_value", "attn_qkv"),
                *_BEFORE,
            ),
            epsilon_key="attention.layer_norm_epsilon",
            always={**_ONE_REACH, **dict.fromkeys(_NO_BIASES, True)},
            rope_scalings=(),
            is_square=True,
        ),
    )
}
"""By general.architecture."""
