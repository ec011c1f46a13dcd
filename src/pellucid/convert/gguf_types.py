"""How GGUF stores numbers: the size of each type's blocks, and how its bytes become float32.

A quantised row is cut into blocks; a block holds small whole numbers and the scale (and the offset) that they share.
The plain types and the simplest quantised ones are read here, all others by the `gguf` library.

In: the bytes of a tensor.  Out: an array of float32.  Used by: gguf_file.py.  Read next: gguf_file.py.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from pellucid.errors import ModelFileError


@dataclass(frozen=True)
class GgufType:
    """A way of storing numbers."""

    number: int
    """What stands in the file."""
    name: str
    """What llama.cpp calls it."""
    block_length: int
    """How many numbers of a row are stored together."""
    block_bytes: int
    """How many bytes they take."""


TYPES: dict[int, GgufType] = {
    number: GgufType(number, name, block_length, block_bytes)
    for number, name, block_length, block_bytes in (
        (0, "F32", 1, 4),
        (1, "F16", 1, 2),
        (2, "Q4_0", 32, 18),
        (3, "Q4_1", 32, 20),
        (6, "Q5_0", 32, 22),
        (7, "Q5_1", 32, 24),
        (8, "Q8_0", 32, 34),
        (9, "Q8_1", 32, 40),
        (10, "Q2_K", 256, 84),
        (11, "Q3_K", 256, 110),
        (12, "Q4_K", 256, 144),
        (13, "Q5_K", 256, 176),
        (14, "Q6_K", 256, 210),
        (15, "Q8_K", 256, 292),
        (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74),
        (18, "IQ3_XXS", 256, 98),
        (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18),
        (21, "IQ3_S", 256, 110),
        (22, "IQ2_S", 256, 82),
        (23, "IQ4_XS", 256, 136),
        (24, "I8", 1, 1),
        (25, "I16", 1, 2),
        (26, "I32", 1, 4),
        (27, "I64", 1, 8),
        (28, "F64", 1, 8),
        (29, "IQ1_M", 256, 56),
        (30, "BF16", 1, 2),
        (34, "TQ1_0", 256, 54),
        (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17),
        (40, "NVFP4", 64, 36),
        (41, "Q1_0", 128, 18),
    )
}
"""By the number that stands in a file. Source: ggml's table of types; the tests compare it with the library's."""


def to_float32(stored: np.ndarray, kind: GgufType, shape: tuple[int, ...]) -> np.ndarray:
    """Turn the bytes of a tensor into numbers: a new array of float32.

    Args:
        stored: Its bytes, uint8.
        kind: How they store numbers.
        shape: The tensor's shape; the last axis is the one cut into blocks.

    Raises:
        ModelFileError: for a type that is left to the `gguf` library, if that is missing or does not read it either.

    Example:
        >>> to_float32(np.array([0, 60, 0, 192], dtype=np.uint8), TYPES[1], (2,))
        array([ 1., -2.], dtype=float32)
    """
    with np.errstate(all="ignore"):  # scales of a damaged file may be anything; what reads it looks at the result
        return _numbers(stored, kind, shape)


def _numbers(stored: np.ndarray, kind: GgufType, shape: tuple[int, ...]) -> np.ndarray:
    match kind.name:
        case "F32":
            numbers = stored.view("<f4")
        case "F16":
            numbers = stored.view("<f2")
        case "F64":
            numbers = stored.view("<f8")
        case "BF16":
            numbers = (stored.view("<u2").astype("<u4") << 16).view("<f4")
        case "Q8_0":
            blocks = stored.reshape(-1, kind.block_bytes)
            numbers = blocks[:, :2].copy().view("<f2").astype(np.float32) * blocks[:, 2:].view(np.int8)
        case "Q4_0" | "Q4_1":
            numbers = _nibbles(stored.reshape(-1, kind.block_bytes))
        case _:
            row_bytes = shape[-1] // kind.block_length * kind.block_bytes
            numbers = _by_library(stored.reshape(-1, row_bytes), kind)
    own = np.shares_memory(numbers, stored) if numbers.dtype == np.float32 else False
    return np.array(numbers, dtype=np.float32, copy=own or None).reshape(shape)


def _nibbles(blocks: np.ndarray) -> np.ndarray:
    """Blocks of a scale, for Q4_1 an offset, and 32 numbers of four bits: the low halves of 16 bytes, then the high."""
    scales = blocks[:, :-16].copy().view("<f2").astype(np.float32)
    numbers = np.empty((len(blocks), 32), dtype=np.float32)
    numbers[:, :16], numbers[:, 16:] = blocks[:, -16:] & 15, blocks[:, -16:] >> 4
    if scales.shape[1] == 1:
        numbers -= 8
    numbers *= scales[:, :1]
    if scales.shape[1] == 2:
        numbers += scales[:, 1:]
    return numbers


def _by_library(rows: np.ndarray, kind: GgufType) -> np.ndarray:
    try:
        library: Any = importlib.import_module("gguf")
    except ImportError as error:
        raise ModelFileError(
            "the library gguf, which reads weights of this type",
            came=f"weights of type {kind.name}, and no such library here",
            remedy='install it with pip install "pellucid[gguf]", or give the F16, BF16 or Q8_0 file of the same model',
        ) from error
    try:
        return library.quants.dequantize(rows, library.GGMLQuantizationType(kind.number))
    except (NotImplementedError, ValueError, KeyError, AttributeError) as error:
        raise ModelFileError(
            "weights of a type that can be turned into numbers",
            came=f"type {kind.name}, which the installed gguf library does not read",
            remedy="update the library, or give another file of the same model: F16, BF16, Q8_0, Q4_K",
        ) from error
