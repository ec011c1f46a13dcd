"""What a model is: sizes and a few named choices, and nothing that needs torch.

One decoder-only Transformer is described by one flat, frozen `ModelConfig`. A family (GPT-2, Llama, Qwen, ...) is a
set of values for these fields, never a class. The docstring under each field is its help text on the command line.

In: field values.  Out: `ModelConfig`, `RopeScaling`.  Used by: nn, presets, convert, the command line.
Read next: nn/linear.py.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from types import NoneType
from typing import Literal, get_args, get_origin, get_type_hints

from pellucid.errors import ConfigError

Norm = Literal["rms", "layer", "none"]
NormPlacement = Literal["pre", "post", "output", "sandwich"]
FeedForwardKind = Literal["swiglu", "geglu", "gelu", "silu", "relu2"]
Gelu = Literal["exact", "tanh"]
PositionsKind = Literal["rope", "learned", "none"]
QkNorm = Literal["none", "head", "projection"]
AttentionKind = Literal["multi-head"]
LayerReach = Literal["global", "local"]
OwnPart = str
"""A part of one's own, FILE.py:NAME; in a run's description with the hash of the file, file.py:NAME@SHA256."""
OWN_PART = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)(@(?P<sha256>[0-9a-f]{64}))?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class RopeScaling:
    """How rotary frequencies are stretched so that a model reaches past the context it was trained on.

    Source: `linear` divides every frequency by `factor` (Chen et al. 2023, section 3.2); `llama3` divides only the
    slow ones and blends between two wavelengths (Llama 3.1 reference code).
    """

    kind: Literal["linear", "llama3"]
    """linear: divide every frequency; llama3: divide the slow ones, keep the fast ones, blend between."""
    factor: float
    """How many times further the model shall reach."""
    low_frequency_factor: float = 1.0
    """llama3: wavelengths above original_context_length / this are divided by factor."""
    high_frequency_factor: float = 4.0
    """llama3: wavelengths below original_context_length / this are kept."""
    original_context_length: int = 8192
    """llama3: the context length the model was trained on first."""

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_above_zero(self, "factor", "low_frequency_factor", "original_context_length")
        _require(
            self.high_frequency_factor > self.low_frequency_factor,
            "high_frequency_factor above low_frequency_factor",
            f"{self.high_frequency_factor} and {self.low_frequency_factor}",
            "raise the first or lower the second",
        )


MOST_LAYERS = 10_000
"""Ten times the deepest anyone trained. This and the bounds of widths are there so that a damaged file cannot ask for
more than any machine has, or than 64 bits can count."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The description of one decoder-only Transformer.

    Raises:
        ConfigError: if the fields cannot make a model together. The message names both numbers.

    Example:
        >>> ModelConfig(vocab_size=256, d_model=128, num_heads=4).d_head
        32
    """

    # --- sizes
    vocab_size: int = 1024
    """How many token ids the model knows: rows of the embedding, logits of the head."""
    context_length: int = 256
    """The longest sequence the model is trained on (and the reach of learned positions)."""
    d_model: int = 192
    """Width of the residual stream."""
    num_layers: int = 4
    """How many blocks."""
    num_heads: int = 6
    """How many query heads a block has."""
    num_kv_heads: int | None = None
    """How many key and value heads; fewer than num_heads is grouped-query attention. Default: num_heads."""
    d_head: int | None = None
    """Width of one head. Default: d_model / num_heads."""
    d_ff: int | None = None
    """Inner width of the feed-forward part. Default: 8/3 d_model if gated, else 4 d_model, up to a multiple of 32."""
    num_unused_ids: int = 0
    """Ids at the end of the vocabulary that no token uses (padding rows); their logits are -inf."""

    # --- norm
    norm: Norm | OwnPart = "rms"
    """rms: divide by the root mean square; layer: also subtract the mean, and add a bias; none: leave out; or a class
    of your own, FILE.py:NAME."""
    norm_epsilon: float = 1e-6
    """Added to the mean square before the root."""
    norm_placement: NormPlacement = "pre"
    """pre: x + f(norm(x)); post: norm(x + f(x)); output: x + norm(f(x)); sandwich: x + norm(f(norm(x)))."""
    norm_offset: float = 0.0
    """Added to every norm weight before it multiplies; Gemma stores w and multiplies by 1 + w."""
    norm_bias: bool = True
    """Whether layer norms have a bias (rms norms never do)."""

    # --- feed-forward
    feed_forward: FeedForwardKind | OwnPart = "swiglu"
    """swiglu, geglu: gated by SiLU or GELU; gelu, silu, relu2: one hidden layer with that activation; or a class of
    your own, FILE.py:NAME."""
    gelu: Gelu = "exact"
    """exact: x * Phi(x); tanh: the approximation GPT-2 uses."""

    # --- positions
    positions: PositionsKind = "rope"
    """rope: turn queries and keys; learned: add a vector per position; none: leave order to the causal mask."""
    rope_theta: float = 10000.0
    """Base of the rotary wavelengths."""
    rope_theta_local: float | None = None
    """Base of the rotary wavelengths in local layers. Default: rope_theta."""
    rope_scaling: RopeScaling | None = None
    """How rotary frequencies are stretched in global layers. Default: not at all."""

    # --- attention
    attention: AttentionKind | OwnPart = "multi-head"
    """multi-head: ours, with num_heads and num_kv_heads; or a class of your own, FILE.py:NAME."""
    qk_norm: QkNorm = "none"
    """head: RMS norm of each head's queries and keys; projection: of all heads together."""
    attention_scale: float | None = None
    """What scores are multiplied by. Default: 1 / sqrt(d_head)."""
    window: int | None = None
    """Sliding window: a query sees itself and the window - 1 keys before it. Default: all."""
    layer_pattern: tuple[LayerReach, ...] = ()
    """Repeats over the layers; local layers use the window, global ones see all. Default: every layer uses it."""

    # --- biases and the rest
    qkv_bias: bool = False
    """Whether the query, key and value projection has a bias."""
    attention_output_bias: bool = False
    """Whether the attention's output projection has a bias."""
    feed_forward_bias: bool = False
    """Whether the feed-forward projections have a bias."""
    head_bias: bool = False
    """Whether the language-model head has a bias."""
    tie_embeddings: bool = False
    """Whether the head shares its weight with the token embedding."""
    embedding_scale: float = 1.0
    """What token embeddings are multiplied by; Gemma uses sqrt(d_model)."""
    logit_soft_cap: float | None = None
    """Cap c: logits become c * tanh(logits / c). Few runtimes know it, so it is off by default."""
    dropout: float = 0.0
    """Fraction of attention weights and of each part's outputs dropped while training."""

    def __post_init__(self) -> None:
        self._fill("layer_pattern", tuple(self.layer_pattern))
        _check_kinds(self)
        _check_above_zero(self, "vocab_size", "context_length", "d_model", "num_layers", "num_heads")
        if self.num_kv_heads is None:
            self._fill("num_kv_heads", self.num_heads)
        if self.d_head is None:
            _require(
                self.d_model % self.num_heads == 0,
                "num_heads to divide d_model (or d_head to be given)",
                f"d_model={self.d_model} and num_heads={self.num_heads}",
                "choose a num_heads that divides d_model, or set d_head",
            )
            self._fill("d_head", self.d_model // self.num_heads)
        if self.d_ff is None:
            self._fill("d_ff", 32 * math.ceil(self.d_model * (8 / 3 if self.is_gated else 4) / 32))
        _check_above_zero(self, "num_kv_heads", "d_head", "d_ff", "window", "norm_epsilon", "rope_theta")
        _check_above_zero(self, "rope_theta_local", "attention_scale", "embedding_scale", "logit_soft_cap")
        _check_at_most(self, MOST_LAYERS, "num_layers")
        _check_at_most(self, 2**31 - 1, "vocab_size", "context_length", "window")
        _check_at_most(self, 2**24, "d_model", "d_ff", "num_heads", "num_kv_heads", "d_head")
        self._check_together()

    def _fill(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # frozen for everyone else

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward part multiplies by a gate."""
        return self.feed_forward in ("swiglu", "geglu")

    @property
    def own_parts(self) -> dict[str, OwnPart]:
        """Parts that are somebody's own, by the field that names them; no common runtime has these."""
        named = {"attention": self.attention, "feed_forward": self.feed_forward, "norm": self.norm}
        return {field: part for field, part in named.items() if is_own_part(part)}

    def layer_is_local(self, layer: int) -> bool:
        """Whether block `layer` attends through the sliding window."""
        if self.window is None:
            return False
        return not self.layer_pattern or self.layer_pattern[layer % len(self.layer_pattern)] == "local"

    def _check_together(self) -> None:
        _require(
            0 <= self.num_unused_ids < self.vocab_size,
            "num_unused_ids from 0 to vocab_size - 1",
            f"num_unused_ids={self.num_unused_ids} and vocab_size={self.vocab_size}",
            "lower num_unused_ids",
        )
        _require(
            self.num_heads % self.num_kv_heads == 0,
            "num_kv_heads to divide num_heads",
            f"num_heads={self.num_heads} and num_kv_heads={self.num_kv_heads}",
            "choose a num_kv_heads that divides num_heads",
        )
        _require(
            self.positions != "rope" or self.d_head % 2 == 0,
            "an even d_head for rope, which turns features in pairs",
            f"d_head={self.d_head}",
            "set an even d_head, or positions to learned or none",
        )
        _require(0 <= self.dropout < 1, "dropout from 0 up to, not including, 1", f"{self.dropout}", "choose, say, 0.1")
        _require(
            not (self.tie_embeddings and self.head_bias),
            "a tied head without a bias (no common runtime reads one)",
            "tie_embeddings and head_bias together",
            "switch one of them off",
        )
        unknown = set(self.layer_pattern) - set(get_args(LayerReach))
        _require(
            not unknown, "a layer_pattern of global and local", ", ".join(map(repr, unknown)), "use only these two"
        )
        _require(
            "local" not in self.layer_pattern or self.window is not None,
            "a window for the local layers of layer_pattern",
            "window=None",
            "set window",
        )


def is_own_part(value: object) -> bool:
    """Whether a value names a class in a Python file.

    Example:
        >>> is_own_part("mine.py:ReGLU"), is_own_part("swiglu"), is_own_part(None)
        (True, False, False)
    """
    return isinstance(value, str) and OWN_PART.fullmatch(value) is not None


def _require(condition: bool, expected: str, came: str, remedy: str) -> None:
    if not condition:
        raise ConfigError(expected, came=came, remedy=remedy)


def _check_kinds(config: ModelConfig | RopeScaling) -> None:
    """Every field holds a value of its declared kind: "no" is no truth value, and NaN is no number."""
    hints = get_type_hints(type(config))
    for field in fields(config):
        value, kinds = getattr(config, field.name), get_args(hints[field.name]) or (hints[field.name],)
        kind = kinds[0]
        if value is None and NoneType in kinds:
            continue
        if str in kinds and get_origin(kind) is Literal:  # or a part of one's own
            words = get_args(kind)
            expected, fits = f"one of {' | '.join(words)} | FILE.py:NAME", value in words or is_own_part(value)
        elif isinstance(kind, str):
            expected, fits = f"one of {' | '.join(kinds)}", value in kinds
        elif kind is int:
            expected, fits = "a whole number", isinstance(value, int) and value is not True and value is not False
        elif kind is float:
            expected, fits = "a finite number", isinstance(value, int | float) and math.isfinite(value)
        elif isinstance(kind, type):
            expected, fits = f"a {kind.__name__}", isinstance(value, kind)
        else:
            continue
        _require(fits, f"{field.name} to be {expected}", repr(value), f"set {field.name} to {expected}")


def _check_at_most(config: ModelConfig, most: int, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(value is None or value <= most, f"{name} of at most {most:,}", repr(value), f"lower {name}")


def _check_above_zero(config: ModelConfig | RopeScaling, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(value is None or value > 0, f"{name} above 0", repr(value), f"raise {name}")
