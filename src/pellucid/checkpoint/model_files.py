"""The two files that are a model: config.json says what it is, model.safetensors holds its weights.

    config.json   {"format": "pellucid", "version": 1, "model": {every field of ModelConfig}}

In: weights and a `ModelConfig`.  Out: files, and back a `TransformerLM`.  Used by: run_folder, load, train.
Read next: checkpoints.py.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from pellucid import own_parts
from pellucid.checkpoint.durable import write_durably
from pellucid.checkpoint.stored_tensors import StoredTensors
from pellucid.checkpoint.tensor_file import (
    plain_names,
    read_weights,
    refuse_other_weights,
    without_copies,
    write_tensors,
)
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

FORMAT, VERSION = "pellucid", 1
WEIGHTS, CONFIG = "model.safetensors", "config.json"


def write_model(folder: Path, model_tensors: Mapping[str, Tensor], config: ModelConfig, **facts: str) -> None:
    """Write both files into `folder`, each all or nothing; a tied weight is stored once.

    Args:
        folder: Where.
        model_tensors: A model's `state_dict()`.
        config: What the model is.
        facts: Short texts for the header of the weights, such as the step they are of.

    Raises:
        ModelFileError: if config ties the head to the embedding and the two differ.
    """
    tensors = without_copies(plain_names(model_tensors))
    head = tensors.pop("lm_head.weight", None) if config.tie_embeddings else None
    if head is not None and not torch.equal(head, tensors["token_embedding.weight"]):
        raise ModelFileError(
            "a head equal to the embedding it is tied to",
            came="two different tensors",
            remedy="save this model with tie_embeddings=False",
        )
    write_config(folder, config)
    write_tensors(folder / WEIGHTS, tensors, facts)


def write_config(folder: Path, config: ModelConfig) -> None:
    """Write what the model is, and its own parts."""
    described = {"format": FORMAT, "version": VERSION, "model": msgspec.to_builtins(config)}
    own_parts.keep(config, folder, write_durably)
    write_durably(folder / CONFIG, json.dumps(described, indent=2, ensure_ascii=False).encode() + b"\n")


def read_config(folder: Path) -> ModelConfig:
    """What the model in `folder` is.

    Raises:
        ModelFileError: if config.json is missing, of another format or version, or does not describe a model.
    """
    path = folder / CONFIG
    remedy = "use the config.json that was written with the weights"
    try:
        described = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError as error:
        raise ModelFileError("a config.json beside the weights", came=f"none in '{folder}'", remedy=remedy) from error
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise ModelFileError("JSON in config.json", came=f"'{path}': {error}", remedy=remedy) from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise ModelFileError("a model of pellucid's own format", came=f"another in '{path}'", remedy=remedy)
    if described.get("version") != VERSION:
        raise ModelFileError(
            f"version {VERSION} of the model format",
            came=f"version {described.get('version')} in '{path}'",
            remedy="use the release of pellucid that wrote it, or a newer one",
        )
    fields = described.get("model")
    try:
        config = msgspec.convert(fields, ModelConfig)
    except msgspec.ValidationError as error:
        raise ModelFileError("fields of a model", came=f"'{path}': {error}", remedy=remedy) from error
    unknown = set(fields or ()) - {field.name for field in dataclasses.fields(ModelConfig)}
    if unknown:
        raise ModelFileError("only known fields", came=f"{sorted(unknown)} in '{path}'", remedy=remedy)
    return config


def read_model(folder: Path) -> TransformerLM:
    """The model in `folder`, on the CPU, in evaluation mode, in the number type its weights are stored in.

    Raises:
        ModelFileError: if either file is missing or the two do not fit each other.
    """
    config = read_config(folder)
    path = folder / WEIGHTS
    if not path.exists():
        raise ModelFileError(f"{WEIGHTS} beside {CONFIG}", came=f"none in '{folder}'", remedy="train or copy it first")
    stored = StoredTensors(path)
    if config.own_parts:
        model = empty_model(config, number_type(stored))
    else:
        outline = model_outline(config, len(stored))
        refuse_other_weights(outline, stored, f"'{path}'")  # before memory is taken for them
        model = in_memory(outline, number_type(stored))
    read_weights(model, stored, f"'{path}'")
    return model.eval()


def number_type(stored: StoredTensors) -> torch.dtype | None:
    """The number type that holds all tensors of a file; float32 for float16, in which scores overflow at 65,504."""
    widest = torch.uint8
    for name in stored:
        widest = torch.promote_types(widest, stored.number_type(name))
    if widest == torch.float16:
        return torch.float32
    return widest if widest.is_floating_point else None


def empty_model(config: ModelConfig, dtype: torch.dtype | None = None) -> TransformerLM:
    """A model whose weights hold nothing yet: quick to make, and no random stream is touched.

    Args:
        config: What it is.
        dtype: The number type of its weights. Default: torch's own.
    """
    if config.own_parts:  # it may hold more than weights, and draw them
        with torch.random.fork_rng(devices=[]):
            return TransformerLM(config).to(dtype)
    return in_memory(model_outline(config), dtype)


def model_outline(config: ModelConfig, num_tensors: int | None = None) -> TransformerLM:
    """A model without memory, to see whether weights are its own before anything is believed of its sizes.

    Args:
        config: What it is; it has no parts of somebody's own.
        num_tensors: How many a file holds for it.

    Raises:
        ModelFileError: if it has more layers than the file has tensors.
    """
    if num_tensors is not None and config.num_layers > num_tensors:
        came = f"{num_tensors:,} tensors"
        raise ModelFileError(
            f"the weights of {config.num_layers:,} layers", came=came, remedy="use the config that belongs to them"
        )
    with torch.device("meta"):
        return TransformerLM(config)


def in_memory(outline: TransformerLM, dtype: torch.dtype | None = None) -> TransformerLM:
    """The same model with memory for its weights, which hold nothing yet."""
    # As `to_empty` does, save that `empty_like` loads torch's compiler, which takes a second.
    return outline._apply(
        lambda meta: torch.empty(meta.shape, dtype=dtype if dtype and meta.is_floating_point() else meta.dtype)
    )
