"""Three courses' models as `torch.save` leaves them: whose tensor is which of ours, and what their sizes mean.

    nanoGPT             a dictionary with "model" and "model_args"; names as GPT-2's, matrices as ours
    CS336               a state dictionary, and the arguments of the model beside it
    LLMs-from-scratch   state dictionaries of its GPT, Llama and Qwen3, and their dictionaries of sizes beside them

In: names and shapes of tensors.  Out: `TORCH_FAMILIES`.  Used by: torch_checkpoint.  Read next: torch_checkpoint.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pellucid import presets
from pellucid.convert.names import (
    BOOK_CHOICES,
    BOOK_SIZES,
    COURSE_SIZES,
    CS336,
    NANOGPT_SIZES,
    Family,
    Row,
)
from pellucid.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class TorchFamily:
    """What a course's file means."""

    marks: frozenset[str]
    """Tensors by which it is known: all are there."""
    preset: Callable[..., ModelConfig]
    weights: Family
    sizes: Mapping[str, str]
    """Sizes that must be told, ours to theirs."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """What may be told besides."""
    neutral: frozenset[str] = frozenset()
    """What else may be told, and changes nothing."""
    tokenizer: str
    """Where its tokenizer is to be had, for whoever has to name one."""


def _both(ours: str, theirs: str, *, kinds: tuple[str, str] = ("weight", "bias")) -> tuple[Row, Row]:
    weight, bias = kinds
    return Row(f"{ours}.weight", f"{theirs}.{weight}"), Row(f"{ours}.bias", f"{theirs}.{bias}")


def _layer(ours: str, theirs: str, **kinds: Any) -> tuple[Row, Row]:
    return _both(f"blocks.{{i}}.{ours}", theirs, **kinds)


NANOGPT = Family(
    name="nanoGPT",
    pair_order="halves",
    rows=(
        Row("token_embedding.weight", "transformer.wte.weight"),
        Row("position_embedding.weight", "transformer.wpe.weight"),
        *_layer("attention_norm", "transformer.h.{i}.ln_1"),
        *_layer("attention.query_key_value", "transformer.h.{i}.attn.c_attn"),
        *_layer("attention.output", "transformer.h.{i}.attn.c_proj"),
        *_layer("feed_forward_norm", "transformer.h.{i}.ln_2"),
        *_layer("feed_forward.up", "transformer.h.{i}.mlp.c_fc"),
        *_layer("feed_forward.down", "transformer.h.{i}.mlp.c_proj"),
        *_both("final_norm", "transformer.ln_f"),
        Row("lm_head.weight", "lm_head.weight"),
    ),
)


def _book_attention(kind: str) -> Row:
    names = (f"trf_blocks.{{i}}.att.W_{part}.{kind}" for part in ("query", "key", "value"))
    return Row(f"blocks.{{i}}.attention.query_key_value.{kind}", *names)


_SCALED = {"kinds": ("scale", "shift")}
_BOOK_ENDS = (
    Row("token_embedding.weight", "tok_emb.weight"),
    _book_attention("weight"),
    _book_attention("bias"),
    *_layer("attention.output", "trf_blocks.{i}.att.out_proj"),
    Row("lm_head.weight", "out_head.weight"),
)
_BOOK_GATED = (
    *_layer("feed_forward.gate", "trf_blocks.{i}.ff.fc1"),
    *_layer("feed_forward.up", "trf_blocks.{i}.ff.fc2"),
    *_layer("feed_forward.down", "trf_blocks.{i}.ff.fc3"),
)


def _book_norms(**kinds: Any) -> tuple[Row, ...]:
    return (
        *_layer("attention_norm", "trf_blocks.{i}.norm1", **kinds),
        *_layer("feed_forward_norm", "trf_blocks.{i}.norm2", **kinds),
        *_both("final_norm", "final_norm", **kinds),
    )


BOOK_GPT = Family(
    name="LLMs-from-scratch's GPT",
    pair_order="halves",
    rows=(
        *_BOOK_ENDS,
        Row("position_embedding.weight", "pos_emb.weight"),
        *_layer("feed_forward.up", "trf_blocks.{i}.ff.layers.0"),
        *_layer("feed_forward.down", "trf_blocks.{i}.ff.layers.2"),
        *_book_norms(**_SCALED),
    ),
)
BOOK_LLAMA = Family(
    name="LLMs-from-scratch's Llama", pair_order="halves", rows=(*_BOOK_ENDS, *_BOOK_GATED, *_book_norms())
)
BOOK_QWEN3 = Family(
    name="LLMs-from-scratch's Qwen3",
    pair_order="halves",
    rows=(
        *_BOOK_ENDS,
        *_BOOK_GATED,
        *_book_norms(**_SCALED),
        Row("blocks.{i}.attention.query_norm.weight", "trf_blocks.{i}.att.q_norm.scale"),
        Row("blocks.{i}.attention.key_norm.weight", "trf_blocks.{i}.att.k_norm.scale"),
    ),
)

_NEUTRAL = frozenset(
    {"drop_rate", "qkv_bias", "dtype", "qk_norm", "drop_rate_emb", "drop_rate_attn", "drop_rate_shortcut"}
)
_GPT2S = "GPT-2's tokenizer.json"

TORCH_FAMILIES = (
    TorchFamily(
        marks=frozenset({"transformer.wte.weight", "transformer.h.0.attn.c_attn.weight"}),
        preset=lambda **fields: presets.gpt2(**{"gelu": "exact", **fields}),
        weights=NANOGPT,
        sizes=NANOGPT_SIZES,
        neutral=frozenset({"dropout", "bias"}),  # tensors tell whether there are biases
        tokenizer=f"{_GPT2S}, or for one of characters the text it was made from",
    ),
    TorchFamily(
        marks=frozenset({"token_embeddings.weight", "layers.0.attn.q_proj.weight"}),
        preset=lambda **fields: presets.llama(**{"norm_epsilon": 1e-5, **fields}),
        weights=CS336,
        sizes=COURSE_SIZES,
        choices={"rope_theta": "rope_theta", "norm_epsilon": "eps"},
        neutral=frozenset({"device", "dtype"}),
        tokenizer="the tokenizer.json of the text it was made from",
    ),
    TorchFamily(
        marks=frozenset({"tok_emb.weight", "pos_emb.weight", "trf_blocks.0.att.W_query.weight"}),
        preset=presets.gpt2,
        weights=BOOK_GPT,
        sizes=BOOK_SIZES,
        neutral=_NEUTRAL,
        tokenizer=_GPT2S,
    ),
    TorchFamily(
        marks=frozenset({"tok_emb.weight", "trf_blocks.0.att.q_norm.scale", "trf_blocks.0.ff.fc1.weight"}),
        preset=lambda **fields: presets.default(**{"norm_epsilon": 1e-6, **fields}),
        weights=BOOK_QWEN3,
        sizes=BOOK_SIZES,
        choices=BOOK_CHOICES,
        neutral=_NEUTRAL,
        tokenizer="Qwen3's tokenizer.json",
    ),
    TorchFamily(
        marks=frozenset({"tok_emb.weight", "trf_blocks.0.att.W_query.weight", "trf_blocks.0.ff.fc1.weight"}),
        preset=lambda **fields: presets.llama(**{"norm_epsilon": 1e-5, **fields}),
        weights=BOOK_LLAMA,
        sizes=BOOK_SIZES,
        choices=BOOK_CHOICES,
        neutral=_NEUTRAL,
        tokenizer="the tokenizer.json of that Llama",
    ),
)
"""The first whose marks are there is meant."""
