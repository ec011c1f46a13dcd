"""A checkpoint of nanoGPT, CS336 or LLMs-from-scratch, read: data alone is taken from it, never code.

What its tensors do not tell (how many heads, the base of rope, how long a text may be) stands in the checkpoint, as in
nanoGPT's, or in a JSON file beside it, in the course's own words:

    {"vocab_size": 10000, "context_length": 256, "d_model": 512, "num_layers": 4, "num_heads": 16, "d_ff": 1344, …}

In: a path.  Out: `ForeignModel`.  Used by: the command line.  Read next: run_import.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from pellucid.checkpoint import plain_names
from pellucid.convert.filling import HeldWeights
from pellucid.convert.foreign_model import ForeignModel
from pellucid.convert.names import BOOK_SCALING
from pellucid.convert.pickled import read_pickled
from pellucid.convert.torch_families import BOOK_GPT, CS336, NANOGPT, TORCH_FAMILIES, TorchFamily
from pellucid.errors import ConfigError, ModelFileError, TokenizerError
from pellucid.model_config import ModelConfig, RopeScaling
from pellucid.text import TextTokenizer, load_tokenizer

SUFFIXES = (".pt", ".pth")
_INNER = ("model", "model_state_dict", "state_dict", "model_state")
_SIZES = ("model_args", "model_config", "config", "args", "hyperparameters")
"""Where a checkpoint keeps its weights, and where its sizes."""

_BUFFERS = (".attn.bias", ".attn.masked_bias", ".att.mask", "cos", "sin")
_GPT2_HEADS = {768: 12, 1024: 16, 1280: 20, 1600: 25}
"""Heads by width in the four GPT-2s, which the book's files hold without saying so: heads are 64 wide."""


def open_torch_checkpoint(path: Path, tokenizer: TextTokenizer | None = None) -> ForeignModel:
    """The model in a file that `torch.save` wrote.

    Args:
        path: The file. Beside it may be its sizes (`<name>.json`, model_config.json, config.json) and a tokenizer.json.
        tokenizer: Its tokenizer. Default: that beside it.

    Raises:
        ModelFileError: if it holds code, or is not of a course that is known here, or its sizes are not told.
        TokenizerError: if there is no tokenizer, telling where to get one.
    """
    try:
        held = read_pickled(path)
    except OSError as error:
        raise ModelFileError(f"a file at '{path}'", came=str(error.strerror), remedy="check the path") from error
    tensors, inside = _taken_apart(held)
    family = next((one for one in TORCH_FAMILIES if one.marks <= tensors.keys()), None)
    if family is None:
        names = ", ".join(list(tensors)[:3]) or "no tensors by name"
        known = "nanoGPT, CS336 or LLMs-from-scratch (GPT, Llama, Qwen3)"
        remedy = "save the model in Hugging Face's format where it was made"
        raise ModelFileError(f"a checkpoint of {known} in '{path}'", came=names, remedy=remedy)
    tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith(_BUFFERS)}
    told, where = (inside, f"'{path}'") if inside else _beside(path)
    config = _config(family, tensors, told, where, path)
    if config.tie_embeddings:
        tensors.pop("out_head.weight", None)
    return ForeignModel(
        kind=f"a checkpoint of {family.weights.name}",
        config=config,
        family=family.weights,
        weights=HeldWeights(tensors),
        tokenizer=tokenizer or _tokenizer_beside(path, family),
        files=(path,),
        told_by=where,
    )


def _taken_apart(held: Any) -> tuple[dict[str, Tensor], Mapping[str, Any]]:
    """The weights by name, without what wrappers put before it, and the sizes, if they are told."""
    sizes: Mapping[str, Any] = {}
    if isinstance(held, Mapping):
        sizes = next((held[name] for name in _SIZES if isinstance(held.get(name), Mapping)), {})
        held = next((held[name] for name in _INNER if isinstance(held.get(name), Mapping)), held)
    if not isinstance(held, Mapping):
        return {}, sizes
    return plain_names({str(name): one for name, one in held.items() if isinstance(one, Tensor)}), sizes


def _beside(path: Path) -> tuple[Mapping[str, Any], str]:
    for name in (f"{path.stem}.json", "model_config.json", "config.json"):
        beside = path.with_name(name)
        if not beside.exists():
            continue
        try:
            told = msgspec.json.decode(beside.read_bytes())
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            raise ModelFileError(f"JSON in '{beside}'", came=str(error), remedy="mend it, or take it away") from error
        if isinstance(told, Mapping):
            return told, f"'{beside}'"
    return {}, f"'{path.with_suffix('.json')}'"


def _config(
    family: TorchFamily, tensors: Mapping[str, Tensor], told: Mapping[str, Any], where: str, path: Path
) -> ModelConfig:
    told = {name: value for name, value in told.items() if value is not None}
    told = {**(_known_gpt2(tensors) if family.weights is BOOK_GPT else {}), **told}
    missing = [theirs for theirs in family.sizes.values() if theirs not in told]
    if missing or (family.weights is not NANOGPT and family.preset().positions == "rope" and not _theta(family, told)):
        missing = missing or [family.choices["rope_theta"]]
        raise ModelFileError(
            f"the sizes of the model in {where}",
            came=f"no {', '.join(missing)}",
            remedy=f"write them there, as JSON: {', '.join([*family.sizes.values(), *family.choices.values()])}",
        )
    fields = {ours: told[theirs] for ours, theirs in {**family.sizes, **family.choices}.items() if theirs in told}
    known = {*family.sizes.values(), *family.choices.values(), *family.neutral, "rope_freq", "rope_freqs"}
    if unknown := sorted(told.keys() - known):
        came = f"{unknown[0]}={told[unknown[0]]!r}"
        raise ModelFileError(
            f"sizes of {family.weights.name} in {where}", came=came, remedy="take it out if it is none"
        )
    try:
        return family.preset(**fields, **_by_tensors(family, tensors), **_scaling(told), dropout=0.0)
    except (ConfigError, TypeError) as error:
        raise ModelFileError(
            f"sizes that make a model in {where}", came=str(error).rstrip("."), remedy="use those of this checkpoint"
        ) from error


def _theta(family: TorchFamily, told: Mapping[str, Any]) -> bool:
    return family.choices["rope_theta"] in told or family.weights is CS336  # which has 10,000 unless it says otherwise


def _by_tensors(family: TorchFamily, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """What the tensors that are there tell."""
    rows = {row.ours: row.theirs for row in family.weights.rows}

    def has(ours: str) -> bool:
        return ours in rows and rows[ours][0].replace("{i}", "0") in tensors

    head, embedding = (tensors.get(rows[name][0]) for name in ("lm_head.weight", "token_embedding.weight"))
    fields: dict[str, Any] = {
        "qkv_bias": has("blocks.{i}.attention.query_key_value.bias"),
        "attention_output_bias": has("blocks.{i}.attention.output.bias"),
        "feed_forward_bias": has("blocks.{i}.feed_forward.up.bias"),
        "norm_bias": has("final_norm.bias"),
        "tie_embeddings": head is None or (embedding is not None and torch.equal(head, embedding)),
    }
    if family.weights in (NANOGPT, BOOK_GPT):
        fields["d_ff"] = len(tensors[rows["blocks.{i}.feed_forward.up.weight"][0].replace("{i}", "0")])
    return fields


def _scaling(told: Mapping[str, Any]) -> dict[str, Any]:
    stretched = told.get("rope_freq") or told.get("rope_freqs")
    if stretched is None:
        return {}
    if not isinstance(stretched, Mapping) or stretched.keys() != set(BOOK_SCALING.values()):
        came = f"rope_freq={stretched!r}"
        remedy = "use those of this checkpoint"
        raise ModelFileError(f"{', '.join(BOOK_SCALING.values())} under rope_freq", came=came, remedy=remedy)
    fields = {ours: stretched[theirs] for ours, theirs in BOOK_SCALING.items()}
    return {"rope_scaling": RopeScaling(kind="llama3", **fields)}


def _known_gpt2(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    (context_length, d_model), num_rows = tensors["pos_emb.weight"].shape, len(tensors["tok_emb.weight"])
    layers = {name.split(".")[1] for name in tensors if name.startswith("trf_blocks.")}
    sizes = {"vocab_size": num_rows, "context_length": context_length, "emb_dim": d_model, "n_layers": len(layers)}
    return sizes | ({"n_heads": _GPT2_HEADS[d_model]} if d_model in _GPT2_HEADS else {})


def _tokenizer_beside(path: Path, family: TorchFamily) -> TextTokenizer:
    if path.with_name("tokenizer.json").exists():
        return load_tokenizer(path.with_name("tokenizer.json"))
    came = "none"
    if path.with_name("meta.pkl").exists():
        came = "meta.pkl, a pickle, which can run code when it is opened and is left alone"
    raise TokenizerError(
        f"a tokenizer.json beside '{path}'", came=came, remedy=f"give --tokenizer PATH: {family.tokenizer}"
    )
