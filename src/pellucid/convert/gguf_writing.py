"""A GGUF file, written by the `gguf` library: what llama.cpp and Ollama open, with nothing beside it.

Matrices are stored in the number type asked for, or in blocks of 32 small numbers that share a scale; what has one
axis, and positions, stays float32, as llama.cpp wants it. The embedding and the head of a 4-bit file have 8 bits.
Tensors are written one after the other, so it takes little memory.

In: `Outgoing`, a number type, a path.  Out: a file.  Used by: export.  Read next: modelfile.py.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.convert.gguf_config import ROPE_FACTORS
from pellucid.convert.gguf_description import GgufDescription, describe_gguf
from pellucid.convert.gguf_tokens import describe_tokens
from pellucid.convert.gguf_types import TYPES, to_float32
from pellucid.convert.names import to_ours, to_theirs
from pellucid.convert.outgoing import NUMBER_TYPES, Outgoing, converted
from pellucid.errors import UserError

KINDS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "q8_0": "Q8_0", "q4_0": "Q4_0"}
"""What the words for --dtype and --quantize are called there."""

_FILE_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 7, "BF16": 32}
"""llama.cpp's own numbers for what most of a file is stored in; only shown."""

_BY_NAME = {kind.name: kind for kind in TYPES.values()}


def gguf_library() -> Any:
    """The library.

    Raises:
        UserError: if it is not here.
    """
    try:
        return importlib.import_module("gguf")
    except ImportError as error:
        raise UserError(
            "the library gguf, which writes GGUF files",
            came="no such library here",
            remedy='install it with pip install "pellucid[gguf]"',
        ) from error


def write_gguf(path: Path, model: Outgoing, kind: str) -> None:
    """Write the file.

    Args:
        path: Where; there must be nothing.
        model: What to write.
        kind: One of `KINDS`.

    Raises:
        ModelFileError: if llama.cpp has no such model or no such tokenizer, or the type cannot hold its weights.
        UserError: if the library is not here.
    """
    described = describe_gguf(model.config)
    entries = {**described.entries, **describe_tokens(model)}
    library = gguf_library()
    writer = library.GGUFWriter(path, described.family.architecture)
    writer.add_name(model.name)
    writer.add_file_type(_FILE_TYPES[KINDS[kind]])
    if KINDS[kind].startswith("Q"):
        writer.add_quantization_version(library.GGML_QUANT_VERSION)
    for key, value in entries.items():
        add_entry(writer, key, value)
    tensors = tensors_of(model, described)
    for name, tensor in tensors.items():
        stored_as = stored_kind(name, tensor.shape, kind)
        length, width = _BY_NAME[stored_as].block_length, _BY_NAME[stored_as].block_bytes
        shape = (*tensor.shape[:-1], tensor.shape[-1] // length * width)
        raw = None if stored_as == "F32" else library.GGMLQuantizationType[stored_as]
        bytes_of_it = tensor.numel() // length * width
        described_as = (tensor.shape, np.dtype(np.float32)) if raw is None else (shape, np.dtype(np.uint8))
        writer.add_tensor_info(name, *described_as, bytes_of_it, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, tensor in tensors.items():
        writer.write_tensor_data(stored(name, tensor, stored_kind(name, tensor.shape, kind)))
    writer.close()


def tensors_of(model: Outgoing, described: GgufDescription) -> dict[str, Tensor]:
    """The weights by llama.cpp's names and in its order, with Gemma's 1 for `norm_offset`."""
    family, config = described.family, model.config
    ours = dict(model.tensors)
    if config.tie_embeddings and family.has_own_head:
        ours["lm_head.weight"] = ours["token_embedding.weight"]
    theirs = to_theirs(ours, family.weights, config)
    if family.stored_offset:
        shifted = {name: one.float() + family.stored_offset for name, one in theirs.items() if _is_norm(name)}
        theirs |= shifted
    if described.rope_factors is not None:
        theirs[ROPE_FACTORS] = torch.from_numpy(described.rope_factors)
    return theirs


def stored_kind(name: str, shape: tuple[int, ...], kind: str) -> str:
    """In which of llama.cpp's types a tensor is stored.

    Example:
        >>> [stored_kind(name, (64, 64), "q4_0") for name in ("blk.0.attn_q.weight", "output.weight")]
        ['Q4_0', 'Q8_0']
        >>> stored_kind("blk.0.attn_q.weight", (64, 40), "q4_0"), stored_kind("output_norm.weight", (64,), "q8_0")
        ('F16', 'F32')
    """
    if len(shape) == 1 or name == "position_embd.weight":
        return "F32"
    wanted = KINDS[kind]
    if wanted == "Q4_0" and name in ("token_embd.weight", "output.weight"):
        wanted = "Q8_0"
    return wanted if shape[-1] % _BY_NAME[wanted].block_length == 0 else "F16"


def stored(name: str, tensor: Tensor, kind: str) -> np.ndarray:
    """A tensor's numbers as they are stored."""
    if kind == "F32":
        return tensor.detach().cpu().float().contiguous().numpy()
    if kind in ("F16", "BF16"):
        number_type = NUMBER_TYPES["float16" if kind == "F16" else "bfloat16"]
        return converted(name, tensor, number_type).contiguous().view(torch.uint8).numpy()
    library = gguf_library()
    numbers = tensor.detach().cpu().float().contiguous().numpy()
    return library.quants.quantize(numbers, library.GGMLQuantizationType[kind])


def as_read(name: str, tensor: Tensor, kind: str) -> Tensor:
    """What a tensor is once it has been stored and read again, in float32."""
    stored_as = stored_kind(name, tensor.shape, kind)
    raw = np.ascontiguousarray(stored(name, tensor, stored_as)).view(np.uint8).reshape(-1)
    return torch.from_numpy(to_float32(raw, _BY_NAME[stored_as], tuple(tensor.shape)))


def _is_norm(name: str) -> bool:
    return name.endswith("norm.weight")


def add_entry(writer: Any, key: str, value: Any) -> None:
    """Write a property in the type that its value has in Python."""
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case list() | tuple():
            writer.add_array(key, list(value))


def expected_tensors(model: Outgoing, kind: str) -> dict[str, Tensor]:
    """What a reader should find, by our addresses, in float32."""
    described = describe_gguf(model.config)
    read = {name: as_read(name, tensor, kind) for name, tensor in tensors_of(model, described).items()}
    read.pop(ROPE_FACTORS, None)
    offset = described.family.stored_offset
    plain = {name: one - offset if offset and _is_norm(name) else one for name, one in read.items()}
    return to_ours(plain, described.family.weights, model.config)


def narrowed(model: Outgoing, kind: str) -> tuple[str, ...]:
    """What a person should know of matrices that could not be stored as asked for."""
    tensors = tensors_of(model, describe_gguf(model.config))
    whole = [name for name, one in tensors.items() if one.ndim == 2 and name != "position_embd.weight"]
    others = [name for name in whole if kind[0] == "q" and stored_kind(name, tensors[name].shape, kind) == "F16"]
    if not others:
        return ()
    return (f"{len(others)} of {len(whole)} matrices are in float16: their rows are no multiple of 32 long.",)
