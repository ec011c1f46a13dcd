import sys

import gguf
import numpy as np
import pytest

from pellucid.convert.gguf_types import TYPES, to_float32
from pellucid.errors import ModelFileError

BY_NAME = {kind.name: kind for kind in TYPES.values()}
WRITTEN = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "TQ1_0", "TQ2_0", "MXFP4"]  # what the library can write, besides the plain
READ = [kind.name for kind in gguf.quants._type_traits]


def some_numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def random_blocks(kind, rows=3, blocks=2):
    """Bytes of a type nobody here can write; the scales are made finite by keeping exponents small."""
    stored = np.random.default_rng(1).integers(0, 256, (rows, blocks * kind.block_bytes), dtype=np.uint8)
    return stored & 0x3B  # no float16 in it has all exponent bits set


def test_every_type_has_the_size_of_its_blocks_in_the_library():
    library = {int(kind): (kind.name, *sizes) for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    assert {n: (kind.name, kind.block_length, kind.block_bytes) for n, kind in TYPES.items() if n in library} == library


@pytest.mark.parametrize("name", ["F16", "BF16", "Q8_0", *WRITTEN])
def test_what_the_library_writes_is_read_as_the_library_reads_it(name):
    number = gguf.GGMLQuantizationType[name]
    stored = gguf.quants.quantize(some_numbers(5, 512), number)
    expected = gguf.quants.dequantize(stored, number)
    assert np.abs(expected).max() > 0.5
    read = to_float32(np.ascontiguousarray(stored).view(np.uint8).reshape(-1), BY_NAME[name], (5, 512))
    assert np.array_equal(read, expected)


@pytest.mark.parametrize("name", READ)
def test_every_type_that_the_library_reads_is_read(name):
    kind = BY_NAME[name]
    stored = random_blocks(kind)
    expected = gguf.quants.dequantize(stored, gguf.GGMLQuantizationType[name])
    read = to_float32(stored.reshape(-1), kind, (3, 2 * kind.block_length))
    assert np.array_equal(read, expected, equal_nan=True)
    assert np.isfinite(read).all()


def test_float64_and_float32_are_read_into_memory_of_their_own():
    numbers = some_numbers(2, 3)
    for name, stored in (("F32", numbers), ("F64", numbers.astype(np.float64))):
        read = to_float32(stored.view(np.uint8).reshape(-1), BY_NAME[name], (2, 3))
        assert np.array_equal(read, numbers)
        assert not np.shares_memory(read, stored)
        assert read.flags.writeable


def test_a_type_that_nobody_reads_is_refused_by_name():
    kind = BY_NAME["Q8_K"]
    with pytest.raises(ModelFileError, match="Q8_K, which the installed gguf library does not read"):
        to_float32(np.zeros(kind.block_bytes, np.uint8), kind, (kind.block_length,))


def test_without_the_library_the_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    kind = BY_NAME["Q5_1"]
    with pytest.raises(ModelFileError, match=r"pellucid\[gguf\]"):
        to_float32(np.zeros(kind.block_bytes, np.uint8), kind, (kind.block_length,))
    assert to_float32(np.zeros(34, np.uint8), BY_NAME["Q8_0"], (32,)).shape == (32,)
