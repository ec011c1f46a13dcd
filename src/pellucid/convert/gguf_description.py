"""A `ModelConfig` as the entries of a GGUF file: the tables of gguf_families.py and gguf_config.py read the other way.

As for Hugging Face: a model is of the first family whose entries, read again, mean the same model, as far as llama.cpp
hears what they say.

In: a `ModelConfig`.  Out: a family and entries, or why there is none.  Used by: reach, gguf_writing.  Read next:
gguf_writing.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pellucid.convert.gguf_config import CHOICES, ROPE_FACTORS, SIZES, read_gguf_config
from pellucid.convert.gguf_families import GGUF_FAMILIES, GgufFamily
from pellucid.convert.gguf_file import GgufFile, GgufTensor
from pellucid.convert.gguf_types import TYPES
from pellucid.convert.huggingface_description import in_words
from pellucid.convert.meaning import differences, meaning
from pellucid.convert.names import to_theirs
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM, rotary_frequencies


@dataclass(frozen=True, kw_only=True)
class GgufDescription:
    """What a file says of its model."""

    family: GgufFamily
    entries: Mapping[str, Any]
    """By their whole keys; whole numbers, fractions, texts, lists."""
    rope_factors: np.ndarray | None = None
    """What each rotary frequency is divided by, for Llama 3's scaling."""


def describe_gguf(config: ModelConfig) -> GgufDescription:
    """The family that can be this model in llama.cpp, and what a file says of it.

    Raises:
        ModelFileError: naming the fields that no family has.

    Example:
        >>> description = describe_gguf(ModelConfig(qk_norm="head", d_model=64, num_heads=4))
        >>> description.family.architecture, description.entries["qwen3.attention.key_length"]
        ('qwen3', 16)
    """
    nearest: tuple[GgufFamily, Mapping[str, tuple[Any, Any]]] | None = None
    for family in sorted(
        GGUF_FAMILIES.values(), key=lambda family: family.architecture == "llama"
    ):  # it takes others in
        described = _described(config, family)
        apart = _apart(config, family, described)
        if not apart:
            return described
        if nearest is None or len(apart) < len(nearest[1]):
            nearest = family, apart
    assert nearest is not None
    name = nearest[0].weights.name.removesuffix(" in GGUF")
    raise ModelFileError(
        "a model that llama.cpp has",
        came=in_words(config, name, nearest[1]),
        remedy="export it to Hugging Face, or train a model of the default shape",
    )


def _described(config: ModelConfig, family: GgufFamily) -> GgufDescription:
    ours = meaning(config)
    said: dict[str, Any] = {theirs: getattr(config, name) for theirs, name in SIZES.items()}
    said |= {theirs: value for theirs, name in CHOICES.items() if (value := getattr(ours, name)) is not None}
    said["attention.value_length"] = config.d_head
    said[family.epsilon_key] = float(config.norm_epsilon)
    said["vocab_size"] = config.vocab_size
    factors = None
    if config.positions == "rope":
        said["rope.dimension_count"] = config.d_head
        factors = _rope_scaling(ours, said)
    else:
        del said["rope.freq_base"]
    if ours.window is not None:
        said |= _pattern(config)
        said["rope.freq_base_swa"] = float(config.rope_theta_local or config.rope_theta)
    if family.stored_offset and config.rope_theta_local is not None:
        said["rope.freq_base_swa"] = float(config.rope_theta_local)
    entries = {f"{family.architecture}.{key}": value for key, value in said.items()}
    return GgufDescription(family=family, entries=entries, rope_factors=factors)


def _rope_scaling(config: ModelConfig, said: dict[str, Any]) -> np.ndarray | None:
    scaling = config.rope_scaling
    if scaling is None:
        return None
    if scaling.kind == "linear":
        said |= {"rope.scaling.type": "linear", "rope.scaling.factor": float(scaling.factor)}
        return None
    said["rope.scaling.original_context_length"] = scaling.original_context_length
    plain, stretched = (rotary_frequencies(config.d_head, config.rope_theta, one) for one in (None, scaling))
    return (plain / stretched).to(torch.float32).numpy()


def _pattern(config: ModelConfig) -> dict[str, Any]:
    """Which layers are local: nothing, if it is Gemma's five of six, which even old readers know."""
    are_local = [config.layer_is_local(layer) for layer in range(config.num_layers)]
    period = next((n for n in range(2, config.num_layers + 2) if are_local == _all_but_each(n, config)), None)
    if period == 6:  # Gemma's
        return {}
    return {"attention.sliding_window_pattern": are_local if period is None else period}


def _all_but_each(period: int, config: ModelConfig) -> list[bool]:
    return [layer % period < period - 1 for layer in range(config.num_layers)]


def _apart(config: ModelConfig, family: GgufFamily, described: GgufDescription) -> dict[str, tuple[Any, Any]]:
    """What a file of a family could not say, or would say in vain."""
    ours = meaning(config)
    apart = {name: (getattr(ours, name), value) for name, value in family.always.items()}
    apart = {name: pair for name, pair in apart.items() if pair[0] != pair[1]}
    if family.is_square and config.num_heads * config.d_head != config.d_model:
        apart["d_head"] = (config.d_head, config.d_model / config.num_heads)
    if ours.rope_scaling is not None and ours.rope_scaling.kind not in family.rope_scalings:
        apart["rope_scaling"] = (ours.rope_scaling, None)
    if config.own_parts:
        return dict.fromkeys(config.own_parts, (None, None))
    try:
        read, _ = read_gguf_config(_Outline(config, described))
    except ModelFileError as error:
        return apart or {"rope_scaling" if "rotary" in error.expected else "sizes": (error.came, error.expected)}
    return differences(config, read) | apart


class _Outline(GgufFile):
    """A file that is not written yet, as far as its description is read."""

    def __init__(self, config: ModelConfig, described: GgufDescription) -> None:
        self.path, self._described, family = Path("the file to be written"), described, described.family
        self.metadata = {"general.architecture": family.architecture, **described.entries}
        with torch.device("meta"):
            weights = TransformerLM(config).state_dict()
        if config.tie_embeddings:
            del weights["lm_head.weight"]
        known = {name: one for name, one in weights.items() if _has_name(name, family)}
        shapes = {name: tuple(one.shape) for name, one in to_theirs(known, family.weights, config).items()}
        if described.rope_factors is not None:
            shapes[ROPE_FACTORS] = described.rope_factors.shape
        self.tensors = {name: GgufTensor(name, TYPES[0], shape, 0, 0) for name, shape in shapes.items()}

    def same(self, one: str, other: str) -> bool:
        return one == other

    def read(self, name: str) -> np.ndarray:
        assert self._described.rope_factors is not None
        assert name == ROPE_FACTORS
        return self._described.rope_factors


def _has_name(address: str, family: GgufFamily) -> bool:
    """Whether a family knows a weight; one that it does not know will show in what is read again."""
    plain = ".".join("{i}" if part.isdecimal() else part for part in address.split("."))
    return any(row.ours == plain for row in family.weights.rows)
