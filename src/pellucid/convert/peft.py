"""Low-rank factors as a folder in PEFT's format: `peft` loads it beside the model it belongs to, llama.cpp converts it.

    adapter_config.json          rank, alpha, which maps
    adapter_model.safetensors    base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight, and so on

A family that stores queries, keys and values as one map (GPT-2) has one pair of factors for it, so ours are laid side
by side: A above A above A, and each B in its own rows; the rank is then as many times ours.

In: a model with factors.  Out: two files.  Used by: train.  Read next: huggingface_writing.py.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.checkpoint import write_durably, write_tensors
from pellucid.convert.families import HuggingFaceFamily
from pellucid.convert.huggingface_description import describe
from pellucid.convert.names import halves_to_neighbours, names_by_address
from pellucid.lora import FACTORS, AdaptedLinear, adapted_maps
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
VOCABULARY = ("token_embedding.weight", "lm_head.weight")


def write_adapter(folder: Path, model: TransformerLM, trained: Mapping[str, Tensor], base: str) -> None:
    """Write the two files.

    Args:
        folder: Where; made if missing.
        model: Says where factors are.
        trained: What `lora.trained_state` gave.
        base: Where the model is that they belong to.

    Raises:
        ModelFileError: if no family that Hugging Face has is this model.
    """
    family, _ = describe(model.config)
    names = names_by_address(family.weights, model.config.num_layers)
    tensors: dict[str, Tensor] = {}
    suffixes: set[str] = set()
    rank = scaling = 0.0
    stacked: dict[str, int] = {}
    for address, module in adapted_maps(model):
        own = _factors_of(module, address, trained)
        rank, scaling = len(next(iter(own.values()))[0]), module.scaling
        for name, narrow, widen in _named(own, module, names[f"{address}.weight"], family, model.config):
            path = name.removesuffix(".weight")
            tensors[f"{PREFIX}{path}.lora_A.weight"] = narrow
            tensors[f"{PREFIX}{path}.lora_B.weight"] = widen
            suffixes.add(".".join(path.split(".")[-2:]))
            if len(narrow) != rank:
                stacked[path.rpartition(".")[2]] = len(narrow)
    vocabulary = {names[one][0]: trained[one] for one in VOCABULARY if one in trained}
    tensors |= {f"{PREFIX}{name}": tensor for name, tensor in vocabulary.items()}
    described = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": int(rank),
        "lora_alpha": scaling * rank,
        "rank_pattern": stacked,
        "alpha_pattern": {name: scaling * number for name, number in stacked.items()},
        "target_modules": _shortest(suffixes),
        "modules_to_save": [name.split(".")[-2] for name in vocabulary] or None,
        "fan_in_fan_out": family.model_type == "gpt2",
        "bias": "none",
        "lora_dropout": 0.0,
        "inference_mode": True,
    }
    folder.mkdir(exist_ok=True)
    write_durably(folder / CONFIG, json.dumps(described, indent=2, ensure_ascii=False).encode() + b"\n")
    write_tensors(folder / WEIGHTS, tensors)


def _factors_of(module: AdaptedLinear, address: str, trained: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B of each slice that has them."""
    prefix = f"{address}{FACTORS}"
    return {
        name: (trained[f"{prefix}{name}.narrow"].detach().cpu(), trained[f"{prefix}{name}.widen"].detach().cpu())
        for name in module.slices
        if name in module.factors
    }


def _named(
    own: dict[str, tuple[Tensor, Tensor]],
    module: AdaptedLinear,
    theirs: tuple[str, ...],
    family: HuggingFaceFamily,
    config: ModelConfig,
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The factors by the family's names: one pair a map of theirs."""
    turns = config.positions == "rope" and family.weights.pair_order == "neighbours"
    pairs = {
        name: (narrow, halves_to_neighbours(widen, config.d_head) if turns and name in ("query", "key") else widen)
        for name, (narrow, widen) in own.items()
    }
    if len(theirs) == len(module.slices):
        for name, their_name in zip(module.slices, theirs, strict=True):
            if name in pairs:
                yield their_name, *pairs[name]
        return
    narrow = torch.cat([pair[0] for pair in pairs.values()])
    widen = torch.zeros(len(module.weight), len(narrow))
    column, row = 0, 0
    for name, rows in module.slices.items():
        if name in pairs:
            rank = pairs[name][1].shape[1]
            widen[row : row + rows, column : column + rank] = pairs[name][1]
            column += rank
        row += rows
    yield theirs[0], narrow, widen


def _shortest(suffixes: set[str]) -> list[str]:
    """What the maps are called, with as much before it as tells them apart."""
    lasts = [suffix.rpartition(".")[2] for suffix in suffixes]
    found: list[Any] = []
    for suffix in suffixes:
        last = suffix.rpartition(".")[2]
        found.append(suffix if lasts.count(last) > 1 else last)
    return sorted(found)
