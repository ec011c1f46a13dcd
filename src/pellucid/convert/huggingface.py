"""A Hugging Face folder, read: config.json, and model.safetensors or its shards, as a model of ours.

A folder's pickles (pytorch_model.bin) are never opened: reading one can run code.

In: a folder.  Out: `ForeignModel`, `TransformerLM`.  Used by: loading.  Read next: ../loading.py.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from pellucid.checkpoint import StoredTensors
from pellucid.convert.beside_weights import read_chat_template, read_end_ids
from pellucid.convert.filling import filled
from pellucid.convert.foreign_model import ForeignModel
from pellucid.convert.huggingface_config import family_of, language_part, to_model_config
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.text import load_tokenizer

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

BUFFERS = re.compile(r"\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$|(^|\.)rope_freqs(\.weight)?$")
"""Tensors of older files that are no weights: masks, and frequencies that config.json tells."""

IMAGES = re.compile(r"^(model\.)?(vision_tower|multi_modal_projector)\.")
"""Tensors of a model that reads images, too, which its language model does without."""


def open_hugging_face(folder: Path) -> ForeignModel:
    """The model in a folder, with its tokenizer, before its weights are read.

    Raises:
        ModelFileError: for a family or a field of config.json that cannot be had here; if there are no weights, or a
            file is missing or damaged, or there are only pickles.
        TokenizerError: if it has no tokenizer.json that goes with it.
    """
    config = read_hugging_face_config(folder)
    family = family_of(_described(folder))
    tokenizer = load_tokenizer(folder)
    ends = read_end_ids(folder, tokenizer.special_tokens)
    weights = FolderWeights(folder, family.prefix)
    return ForeignModel(
        kind="a Hugging Face folder",
        config=config,
        family=family.weights,
        weights=weights,
        tokenizer=tokenizer,
        end_ids=frozenset(one for one in ends if 0 <= one < config.vocab_size),
        chat_template=read_chat_template(folder),
        notes=weights.notes,
        files=weights.files,
    )


def read_hugging_face_config(folder: Path) -> ModelConfig:
    """What the model in a folder is.

    Raises:
        ModelFileError: naming the family or the field that cannot be had here.
    """
    return to_model_config(_described(folder))


def read_hugging_face(folder: Path, *, num_ids: int | None = None) -> TransformerLM:
    """The model in a folder, on the CPU, in evaluation mode; bfloat16 stays bfloat16, the rest becomes float32.

    Args:
        folder: The folder; it may lack a tokenizer.
        num_ids: How many ids its tokenizer has; rows of the vocabulary behind them are padding and are never written.
            Default: all.

    Raises:
        ModelFileError: for a field of config.json that cannot be had here; for tensors that are missing, unknown or of
            another shape, naming them; for a tied head that is stored and differs from the embedding.
    """
    config, family = read_hugging_face_config(folder), family_of(_described(folder))
    if num_ids is not None:
        config = replace(config, num_unused_ids=max(0, config.vocab_size - num_ids))
    weights = FolderWeights(folder, family.prefix)
    return filled(weights, family.weights, config, told_by="config.json")


class FolderWeights:
    """The weights in a folder's safetensors files, by the names of a whole model.

    Args:
        folder: The folder.
        prefix: What the names of a file without a head leave out.

    Raises:
        ModelFileError: if there are none, or a file is missing or damaged; or only pickles.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        stored = {name: file for file, names in _files(folder) for name in names}
        names = [name for name in stored if not BUFFERS.search(name)]
        images = [name for name in names if IMAGES.match(name)]
        plain = {name: _of_the_language_model(name) for name in names if not IMAGES.match(name)}
        bare = not any(name.startswith(prefix) for name in plain.values())
        self._places = {
            prefix + known if bare and not known.startswith("lm_head.") else known: (stored[name], name)
            for name, known in plain.items()
        }
        self.files = tuple(dict.fromkeys(file.path for file in stored.values()))
        told = f"{len(images)} tensors for images ({', '.join(images[:1])}, …) are left out: only text is read here."
        self.notes = (told,) if images else ()

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        file, stored_name = self._places[name]
        return file.shape(stored_name)

    def number_type(self, name: str) -> torch.dtype:
        """The number type it is kept in."""
        file, stored_name = self._places[name]
        return file.number_type(stored_name)

    def read(self, name: str) -> Tensor:
        """A tensor as it is kept."""
        file, stored_name = self._places[name]
        return file.read(stored_name)

    def read_into(self, name: str, target: Tensor) -> None:
        """Fill a tensor of its shape."""
        file, stored_name = self._places[name]
        file.read_into(stored_name, target)


def _of_the_language_model(name: str) -> str:
    """A name as a model without images has it: it is a part called language_model in one that has them, too."""
    for part, instead in (("model.language_model.", "model."), ("language_model.", "")):
        if name.startswith(part):
            return instead + name.removeprefix(part)
    return name


def _files(folder: Path) -> Iterator[tuple[StoredTensors, list[str]]]:
    """The files with weights, and which of their tensors count."""
    if (folder / WEIGHTS).exists():
        stored = StoredTensors(folder / WEIGHTS)
        yield stored, list(stored)
        return
    if not (folder / INDEX).exists():
        raise _no_weights(folder)
    index = _json(folder / INDEX).get("weight_map")
    if not isinstance(index, Mapping) or not all(isinstance(shard, str) for shard in index.values()):
        raise _broken(folder / INDEX, "no weight_map from names to files")
    for shard in sorted(set(index.values())):
        if Path(shard).name != shard:
            raise _broken(folder / INDEX, f"a file outside the folder, '{shard}'")
        stored = StoredTensors(folder / shard)
        names = [name for name, file in index.items() if file == shard]
        if missing := [name for name in names if name not in stored]:
            raise _broken(folder / shard, f"no tensor {missing[0]}, which {INDEX} says is there")
        yield stored, names


def _described(folder: Path) -> Mapping[str, Any]:
    return language_part(_json(folder / CONFIG))


def _json(path: Path) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise _broken(path, "no such file" if not path.exists() else str(error)) from error
    if not isinstance(fields, dict):
        raise _broken(path, "no object")
    return fields


def _broken(path: Path, came: str) -> ModelFileError:
    return ModelFileError(f"a whole '{path}'", came=came, remedy="copy it again from where it came")


def _no_weights(folder: Path) -> ModelFileError:
    pickles = sorted(path.name for kind in ("*.bin", "*.pt", "*.pth") for path in folder.glob(kind))
    if not pickles:
        return ModelFileError(f"{WEIGHTS} in '{folder}'", came="none", remedy="copy it from where config.json came")
    return ModelFileError(
        f"{WEIGHTS} in '{folder}'",
        came=f"{pickles[0]}, a pickle, which can run code when it is opened and is left alone",
        remedy="take the model's safetensors, or have transformers save it so where you trust the file",
    )
