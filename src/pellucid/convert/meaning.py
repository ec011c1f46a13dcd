"""Whether two descriptions of a model mean the same: fields that change nothing, however they are set, are set aside.

In: a `ModelConfig`.  Out: another, or what differs.  Used by: huggingface_description, gguf_description.  Read next:
huggingface_description.py.
"""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from pellucid.model_config import ModelConfig


def meaning(config: ModelConfig) -> ModelConfig:
    """The same model with every field that changes nothing as `ModelConfig` has it by itself.

    Training's dropout is left out, and rows of the vocabulary that no token uses are rows like any other.

    Example:
        >>> one, other = ModelConfig(gelu="tanh", rope_theta_local=1.0), ModelConfig(attention_scale=32**-0.5)
        >>> meaning(one) == meaning(other)
        True
    """
    plain: dict[str, Any] = {"dropout": 0.0, "num_unused_ids": 0}
    if config.norm != "layer":
        plain["norm_bias"] = True
    if config.feed_forward not in ("geglu", "gelu"):
        plain["gelu"] = "exact"
    if config.attention_scale is not None and math.isclose(config.attention_scale, config.d_head**-0.5):
        plain["attention_scale"] = None
    if math.isclose(config.embedding_scale, 1.0):
        plain["embedding_scale"] = 1.0
    are_local = [config.layer_is_local(layer) for layer in range(config.num_layers)]
    plain["layer_pattern"] = shortest_pattern(are_local)
    if not any(are_local):
        plain["window"] = plain["rope_theta_local"] = None
    elif config.rope_theta_local == config.rope_theta and config.rope_scaling is None:
        plain["rope_theta_local"] = None
    if config.positions != "rope":
        plain |= {"rope_theta": 10000.0, "rope_theta_local": None, "rope_scaling": None}
    return replace(config, **plain)


def shortest_pattern(are_local: Sequence[bool]) -> tuple[str, ...]:
    """What repeats over the layers; nothing where all are alike.

    Example:
        >>> shortest_pattern([True, False, True, False, True])
        ('local', 'global')
    """
    if all(are_local) or not any(are_local):
        return ()
    lengths = range(1, len(are_local) + 1)
    period = next(n for n in lengths if all(one == are_local[i % n] for i, one in enumerate(are_local)))
    return tuple("local" if is_local else "global" for is_local in are_local[:period])


def differences(one: ModelConfig, other: ModelConfig) -> dict[str, tuple[Any, Any]]:
    """Fields in which the meanings of two models differ, with both values; numbers are as exact as 32 bits hold them.

    Example:
        >>> differences(ModelConfig(), ModelConfig(logit_soft_cap=30.0))
        {'logit_soft_cap': (None, 30.0)}
    """
    one, other = meaning(one), meaning(other)
    pairs = {field.name: (getattr(one, field.name), getattr(other, field.name)) for field in fields(ModelConfig)}
    return {name: (ours, theirs) for name, (ours, theirs) in pairs.items() if not _alike(ours, theirs)}


def _alike(one: Any, other: Any) -> bool:
    both_numbers = isinstance(one, float) and isinstance(other, float)
    return bool(np.float32(one) == np.float32(other)) if both_numbers else one == other
