"""What a GGUF file says of its model, as a `ModelConfig`. A key that changes the mathematics is read or refused.

In: a `GgufFile`.  Out: `ModelConfig`, and the family it is of.  Used by: gguf.py.  Read next: gguf.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from pellucid.convert.gguf_families import GGUF_FAMILIES, GgufFamily
from pellucid.convert.gguf_file import GgufFile
from pellucid.errors import ConfigError, ModelFileError, shown
from pellucid.model_config import MOST_LAYERS, ModelConfig, RopeScaling
from pellucid.nn import rotary_frequencies

ROPE_FACTORS = "rope_freqs.weight"
"""What each rotary frequency is divided by: the only trace of Llama 3's scaling in a file."""

SIZES = {
    "context_length": "context_length",
    "embedding_length": "d_model",
    "block_count": "num_layers",
    "feed_forward_length": "d_ff",
    "attention.head_count": "num_heads",
}
CHOICES = {
    "attention.head_count_kv": "num_kv_heads",
    "attention.key_length": "d_head",
    "attention.sliding_window": "window",
    "rope.freq_base": "rope_theta",
    "rope.freq_base_swa": "rope_theta_local",
    "final_logit_softcapping": "logit_soft_cap",
}
_NEUTRAL: dict[str, Any] = {
    "expert_count": 0,
    "expert_used_count": 0,
    "attention.causal": True,
    "use_parallel_residual": False,
    "attn_logit_softcapping": 0.0,
    "logit_scale": 1.0,
    "residual_scale": 1.0,
    "rope.scaling.attn_factor": 1.0,
}
"""Keys that may have this value, which changes nothing, and no other."""
_READ_ELSEWHERE = {
    "vocab_size",  # rows of the embedding
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon",
    "attention.sliding_window_pattern",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "rope.scale_linear",  # what rope.scaling.factor was called in 2023
    "tensor_data_layout",
}

_LLAMA3 = {"low_frequency_factor": 1.0, "high_frequency_factor": 4.0, "original_context_length": 8192}
"""Of every Llama from 3.1 on; only the factor differs (8 or 32). Files hold the result, not these."""

_GEMMA3_27B_LAYERS = 62  # the one size whose attention is scaled by d_model / num_heads; llama.cpp tells it so, too


def read_gguf_config(file: GgufFile) -> tuple[ModelConfig, GgufFamily]:
    """What the model in a file is.

    Raises:
        ModelFileError: naming the family or the key that cannot be had here.
    """
    architecture = file.metadata.get("general.architecture")
    family = GGUF_FAMILIES.get(architecture) if isinstance(architecture, str) else None
    if family is None:
        raise _refused(f"a model of {', '.join(GGUF_FAMILIES)}", repr(architecture), file)
    if file.metadata.get("split.count", 1) not in (0, 1):
        raise _refused("a model in one file", f"a part of {file.metadata['split.count']}", file)
    said = _said(file, family)
    fields = {ours: said[theirs] for theirs, ours in SIZES.items() if theirs in said}
    missing = [f"{family.architecture}.{key}" for key in SIZES if key not in said]
    if missing or "token_embd.weight" not in file.tensors:
        raise _refused("all sizes of the model", f"no {(missing or ['token_embd.weight'])[0]}", file)
    fields |= {ours: said[theirs] for theirs, ours in CHOICES.items() if said.get(theirs)}
    fields |= _presence(file)
    try:
        fields |= _families_own(family, said)
        fields["norm_epsilon"] = _decimal(said.get(family.epsilon_key, 1e-5))
        scaling = _rope_scaling(file, said, fields)
        config = family.preset(**fields, rope_scaling=scaling)
    except ModelFileError:
        raise
    except (ConfigError, TypeError, ValueError, ArithmeticError) as error:  # a text where a number stands
        raise _refused("sizes that make a model", str(error).rstrip("."), file) from error
    _check_widths(file, said, config)
    return config, family


def _said(file: GgufFile, family: GgufFamily) -> dict[str, Any]:
    """The file's keys about its model, each known and one value for all layers."""
    prefix, said = f"{family.architecture}.", {}
    for key in file.metadata:
        if not key.startswith(prefix):
            continue
        short, value = key.removeprefix(prefix), file.metadata[key]
        is_list = isinstance(value, list) and short != "attention.sliding_window_pattern"
        if is_list and len(set(map(str, value))) != 1:
            raise _refused(f"one {key} for all layers", "several", file)
        value = value[0] if is_list else value
        if short in _NEUTRAL and value != _NEUTRAL[short]:
            raise _refused(f"{key} = {_NEUTRAL[short]}", repr(value), file)
        if not {short} & {*SIZES, *CHOICES, *_NEUTRAL, *_READ_ELSEWHERE}:
            raise _refused("known properties of a model", f"{shown(key)[1:-1]} = {shown(str(value))[1:-1]}", file)
        said[short] = value
    return said


def _presence(file: GgufFile) -> dict[str, Any]:
    """What the tensors that are there tell."""
    tensors = file.tensors
    return {
        "vocab_size": tensors["token_embd.weight"].shape[0],
        "qkv_bias": "blk.0.attn_q.bias" in tensors or "blk.0.attn_qkv.bias" in tensors,
        "attention_output_bias": "blk.0.attn_output.bias" in tensors,
        "feed_forward_bias": "blk.0.ffn_up.bias" in tensors,
        "tie_embeddings": not _has_own_head(file),
        "dropout": 0.0,
    }


def _has_own_head(file: GgufFile) -> bool:
    """Whether the head is more than a copy of the embedding, which some converters write."""
    return "output.weight" in file.tensors and not file.same("output.weight", "token_embd.weight")


def _families_own(family: GgufFamily, said: Mapping[str, Any]) -> dict[str, Any]:
    """What llama.cpp knows of a family and writes into no file."""
    if family.architecture != "gemma3":
        return {}
    pattern = said.get("attention.sliding_window_pattern", 6)
    if not isinstance(pattern, int | list) or (isinstance(pattern, int) and not 1 <= pattern <= MOST_LAYERS):
        raise ConfigError("a sliding_window_pattern of some layers", came=repr(pattern), remedy="give another")
    local = [layer % pattern < pattern - 1 for layer in range(pattern)] if isinstance(pattern, int) else pattern
    own: dict[str, Any] = {
        "layer_pattern": tuple("local" if is_local else "global" for is_local in local),
        "embedding_scale": said["embedding_length"] ** 0.5,
    }
    if said["block_count"] == _GEMMA3_27B_LAYERS:
        own["attention_scale"] = (said["embedding_length"] / said["attention.head_count"]) ** -0.5
    return own


def _rope_scaling(file: GgufFile, said: Mapping[str, Any], fields: Mapping[str, Any]) -> RopeScaling | None:
    kind = said.get("rope.scaling.type", "none")
    factor = said.get("rope.scaling.factor", said.get("rope.scale_linear", 1.0))
    if kind not in ("none", "linear") and not (kind == "llama3" and ROPE_FACTORS in file.tensors):
        raise _refused("rope.scaling.type none or linear", repr(kind), file)
    linear = RopeScaling(kind="linear", factor=factor) if kind == "linear" and factor != 1.0 else None
    if ROPE_FACTORS not in file.tensors:
        return linear
    divisors = torch.from_numpy(file.read(ROPE_FACTORS)).double().reshape(-1)
    if (divisors == 1).all():
        return linear
    d_head = 2 * divisors.numel()
    told = said.get("rope.scaling.original_context_length", _LLAMA3["original_context_length"])
    scaling = RopeScaling(kind="llama3", factor=float(divisors.max()), **{**_LLAMA3, "original_context_length": told})
    theta = fields.get("rope_theta", 10000.0)
    expected = rotary_frequencies(d_head, theta) / rotary_frequencies(d_head, theta, scaling)
    if linear is not None or not torch.allclose(divisors, expected, rtol=1e-4):
        raise _refused(f"Llama 3's rotary factors in {ROPE_FACTORS}", "others", file)
    return scaling


def _check_widths(file: GgufFile, said: Mapping[str, Any], config: ModelConfig) -> None:
    for key in ("attention.value_length", "rope.dimension_count"):
        if said.get(key, config.d_head) != config.d_head:
            raise _refused(f"{key} = {config.d_head}, the width of a head", repr(said[key]), file)


def _decimal(stored: float) -> float:
    """The number that was meant by one stored in 32 bits: 1e-06, not 9.99999997e-07."""
    return float(str(np.float32(stored)))


def _refused(expected: str, came: str, file: GgufFile) -> ModelFileError:
    return ModelFileError(
        f"{expected} in '{file.path}'", came=came, remedy="use llama.cpp for this file, or another model"
    )
