"""A Hugging Face folder, read: config.json, and model.safetensors or its shards, as a model of ours.

A folder's pickles (pytorch_model.bin) are never opened: reading one can run code.

In: a folder.  Out: `TransformerLM`.  Used by: loading.  Read next: ../loading.py.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pellucid.checkpoint import refuse_foreign_weights
from pellucid.convert.families import HuggingFaceFamily
from pellucid.convert.huggingface_config import family_of, to_model_config
from pellucid.convert.names import one_by_one, to_theirs
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

BUFFERS = re.compile(r"\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$|(^|\.)rope_freqs(\.weight)?$")
"""Tensors of older files that are no weights: masks, and frequencies that config.json tells."""

NUMBER_TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float32}
"""Which type stored numbers are used in. In float16 scores overflow (65,504), so it is widened, which changes none."""


class StoredTensors(Mapping[str, Tensor]):
    """The tensors of a folder's safetensors files by name, each read when it is asked for.

    A file is opened anew for each: while it is open, all that was read of it stays in memory.

    Args:
        folder: The folder.

    Raises:
        ModelFileError: if there are none, or a file is missing or damaged; or only pickles.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[str, tuple[str, tuple[int, ...]]] = {}
        """Each tensor's number type, as the file calls it, and its shape."""
        self._files: dict[str, Path] = {}
        if (folder / WEIGHTS).exists():
            self._look_into(folder / WEIGHTS)
        elif (folder / INDEX).exists():
            self._look_into_shards()
        else:
            raise _no_weights(folder)

    def __getitem__(self, name: str) -> Tensor:
        with _opened(self._files[name]) as file:
            return file.get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.about)

    def __len__(self) -> int:
        return len(self.about)

    def _look_into(self, path: Path, wanted: Collection[str] | None = None) -> None:
        with _opened(path) as file:
            held = set(file.keys())
            for name in held if wanted is None else wanted:
                if name not in held:
                    raise _broken(path, f"no tensor {name}, which {INDEX} says is there")
                described = file.get_slice(name)
                self.about[name] = described.get_dtype(), tuple(described.get_shape())
                self._files[name] = path

    def _look_into_shards(self) -> None:
        index = _json(self.folder / INDEX).get("weight_map")
        if not isinstance(index, dict) or not all(isinstance(shard, str) for shard in index.values()):
            raise _broken(self.folder / INDEX, "no weight_map from names to files")
        for shard in sorted(set(index.values())):
            if Path(shard).name != shard:
                raise _broken(self.folder / INDEX, f"a file outside the folder, '{shard}'")
            self._look_into(self.folder / shard, [name for name, file in index.items() if file == shard])


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise _broken(path, "no such file" if not path.exists() else str(error)) from error


def read_hugging_face_config(folder: Path) -> ModelConfig:
    """What the model in a folder is.

    Raises:
        ModelFileError: naming the family or the field that cannot be had here.
    """
    return to_model_config(_json(folder / CONFIG))


def read_hugging_face(folder: Path, *, num_ids: int | None = None) -> TransformerLM:
    """The model in a folder, on the CPU, in evaluation mode; bfloat16 stays bfloat16, the rest becomes float32.

    Args:
        folder: The folder.
        num_ids: How many ids its tokenizer has; rows of the vocabulary behind them are padding and are never written.
            Default: all.

    Raises:
        ModelFileError: for a field of config.json that cannot be had here; for tensors that are missing, unknown or of
            another shape, naming them; for a tied head that is stored and differs from the embedding.
    """
    config, family = read_hugging_face_config(folder), family_of(_json(folder / CONFIG))
    if num_ids is not None:
        config = replace(config, num_unused_ids=max(0, config.vocab_size - num_ids))
    with torch.device("meta"):
        model = TransformerLM(config)
    named = _Named(StoredTensors(folder), family.prefix)
    needed = _checked(named, model, family)
    model.to(_number_type(named, needed)).to_empty(device="cpu")
    _fill(model, named, family)
    return model.eval()


class _Named(Mapping[str, Tensor]):
    """Stored tensors by the names of a whole model: a file without a head leaves a prefix out."""

    def __init__(self, stored: StoredTensors, prefix: str) -> None:
        bare = not any(name.startswith(prefix) for name in stored)
        self._stored = stored
        self._names = {
            prefix + name if bare and not name.startswith("lm_head.") else name: name
            for name in stored
            if not BUFFERS.search(name)
        }

    def __getitem__(self, name: str) -> Tensor:
        return self._stored[self._names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def about(self, name: str) -> tuple[str, tuple[int, ...]]:
        return self._stored.about[self._names[name]]


def _checked(named: _Named, model: TransformerLM, family: HuggingFaceFamily) -> list[str]:
    """The names that the model needs; refused if the file's are others."""
    expected = {
        name: tuple(tensor.shape)
        for name, tensor in to_theirs(model.state_dict(), family.weights, model.config).items()
    }
    optional = {"lm_head.weight"} if model.config.tie_embeddings else set()
    problems = [f"{name} is missing" for name in expected if name not in named and name not in optional]
    problems += [f"{name} is unknown" for name in named if name not in expected]
    for name in named.keys() & expected.keys():
        shape = named.about(name)[1]
        if shape != expected[name]:
            problems.append(f"{name} has shape {shape}, not {expected[name]}")
    refuse_foreign_weights(problems, f"the weights of the {family.weights.name} model that config.json describes")
    return [name for name in expected if name in named]


def _number_type(named: _Named, needed: list[str]) -> torch.dtype:
    """The type that holds all of them."""
    found = {named.about(name)[0]: name for name in needed}
    for kind, name in found.items():
        if kind not in NUMBER_TYPES:
            raise ModelFileError(
                f"weights stored as {', '.join(NUMBER_TYPES)}",
                came=f"{name} as {kind}",
                remedy="use a release of the model that is not quantised",
            )
    types = {NUMBER_TYPES[kind] for kind in found}
    return types.pop() if len(types) == 1 else torch.float32


@torch.no_grad()
def _fill(model: TransformerLM, named: _Named, family: HuggingFaceFamily) -> None:
    targets = model.state_dict(keep_vars=True)
    tied = model.config.tie_embeddings
    for name, tensor in one_by_one(named, family.weights, model.config):
        if tied and name == "lm_head.weight":  # the table has the embedding first
            if not torch.equal(targets[name], tensor.to(targets[name].dtype)):
                raise ModelFileError(
                    "a head equal to the embedding, as tie_word_embeddings says in config.json",
                    came="an lm_head.weight of its own",
                    remedy="set tie_word_embeddings to false if the head is meant",
                )
            continue
        targets[name].copy_(tensor)


def _json(path: Path) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
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
