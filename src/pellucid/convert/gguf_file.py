"""The GGUF container, read where it lies: what a file says of itself, and its tensors by name.

    "GGUF" · version · number of tensors · number of entries
    entries       key · type · value             (the vocabulary is three arrays among them)
    tensors       name · shape · type · place    (a shape is written innermost axis first)
    data          from the next multiple of general.alignment on

The entries are mapped into memory; opening walks them and copies nothing, and arrays are decoded when they are asked
for. Tensors are read when they are asked for, some rows at a time; mapped, the file's pages would be memory of the
process. No count and no length of a file is believed before the file is seen to hold as much.

In: a path.  Out: `GgufFile`.  Used by: convert.  Read next: names.py.
"""

from __future__ import annotations

import io
import mmap
import struct
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.convert.gguf_types import TYPES, GgufType, to_float32
from pellucid.errors import ModelFileError, shown

MAGIC = b"GGUF"
VERSIONS = (2, 3)
"""Version 1 counted with 32 bits and was in use for some weeks of 2023."""

_ALIGNMENT = 32
_TOGETHER = 1 << 19
"""Numbers that are turned into float32 together (and bytes that are compared): a processor's cache holds them."""
_MOST_AXES = 4  # ggml's GGML_MAX_DIMS
_DEEPEST = 4
"""Arrays in arrays: nobody is known to write any, and a file shall not choose how deep this program recurses."""

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True)
class GgufTensor:
    """Where a tensor lies."""

    name: str
    """What the file calls it."""
    kind: GgufType
    """How its numbers are stored."""
    shape: tuple[int, ...]
    """As torch writes it, innermost axis last."""
    start: int
    """The first of its bytes in the file."""
    num_bytes: int
    """How many there are."""


class GgufFile:
    """An open GGUF file.

    Args:
        path: The file. It stays open as long as this object lives.

    Raises:
        ModelFileError: if it is no such file, of another version or byte order, cut short, or contradicts itself.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file, mapped = _opened(self.path)
        weakref.finalize(self, self._file.close)
        reader = _Reader(mapped, self.path)
        num_tensors, num_entries = reader.header()
        self.metadata: Mapping[str, Any] = _Entries(reader, reader.entries(num_entries))
        described = [reader.tensor_description() for _ in range(reader.believable(num_tensors, 24, "tensors"))]
        alignment = self.metadata.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise reader.bad("a general.alignment that is a power of two", repr(alignment))
        data_start = -(-reader.at // alignment) * alignment
        self.tensors: Mapping[str, GgufTensor] = _placed(reader, described, data_start, alignment)

    def __repr__(self) -> str:
        return f"GgufFile({str(self.path)!r}, {len(self.metadata)} entries, {len(self.tensors)} tensors)"

    def stored(self, name: str) -> np.ndarray:
        """The bytes of a tensor, uint8, in memory of their own.

        Raises:
            ModelFileError: if there is no such tensor.
        """
        return self._piece(self._tensor(name), 0, self._tensor(name).num_bytes)

    def read(self, name: str) -> np.ndarray:
        """A tensor as float32.

        Raises:
            ModelFileError: if there is no such tensor, or its type cannot be read.
        """
        numbers = np.empty(self._tensor(name).shape, dtype=np.float32)
        self.read_into(name, numbers)
        return numbers

    def read_into(self, name: str, numbers: np.ndarray) -> None:
        """Fill an array of float32 with a tensor, some rows at a time: no second copy of it is ever in memory.

        Raises:
            ModelFileError: if there is no such tensor, or its type cannot be read.
        """
        tensor = self._tensor(name)
        rows = numbers.reshape(-1, tensor.shape[-1])
        row_bytes = tensor.num_bytes // len(rows)
        step = max(1, _TOGETHER // tensor.shape[-1])
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            stored = self._piece(tensor, first * row_bytes, len(part) * row_bytes)
            part[:] = to_float32(stored, tensor.kind, part.shape)

    def same(self, one: str, other: str) -> bool:
        """Whether two tensors are stored alike, to the last byte."""
        first, second = self._tensor(one), self._tensor(other)
        if (first.kind, first.shape) != (second.kind, second.shape):
            return False
        places = range(0, first.num_bytes, _TOGETHER)
        sizes = [(place, min(_TOGETHER, first.num_bytes - place)) for place in places]
        return all(np.array_equal(self._piece(first, *size), self._piece(second, *size)) for size in sizes)

    def _tensor(self, name: str) -> GgufTensor:
        if name not in self.tensors:
            raise ModelFileError(f"a tensor {shown(name)} in '{self.path}'", came="none", remedy="give a complete file")
        return self.tensors[name]

    def _piece(self, tensor: GgufTensor, start: int, num_bytes: int) -> np.ndarray:
        piece = np.empty(num_bytes, dtype=np.uint8)
        self._file.seek(tensor.start + start)
        left = memoryview(piece)
        while left:
            count = self._file.readinto(left)
            if not count:
                came = f"one that has become shorter, and ends within {shown(tensor.name)}"
                raise ModelFileError(f"a whole GGUF file at '{self.path}'", came=came, remedy="copy it again")
            left = left[count:]
        return piece


class _Entries(Mapping[str, Any]):
    """What a file says of itself: numbers, texts and lists by key, each decoded when it is asked for."""

    def __init__(self, reader: _Reader, places: Mapping[str, tuple[int, int]]) -> None:
        self._reader, self._places = reader, places

    def __getitem__(self, key: str) -> Any:
        kind, at = self._places[key]
        return self._reader.value(kind, at, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Reader:
    """Reads a file from front to back, and values again at their places."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0

    def bad(self, expected: str, came: str) -> ModelFileError:
        return ModelFileError(
            f"{expected} in '{self.path}'", came=came, remedy="copy the file again from where it came, or use another"
        )

    def header(self) -> tuple[int, int]:
        """Check what the file begins with; give the numbers of tensors and of entries."""
        if self.data[:4] != MAGIC:
            remedy = "give a file that llama.cpp reads"
            raise ModelFileError(f"a GGUF file at '{self.path}'", came="a file of another kind", remedy=remedy)
        self.at = 4
        (version,) = self._next("<I")
        if version not in VERSIONS:
            is_swapped = version & 0xFFFF == 0
            big = "one for big-endian machines" if is_swapped else f"version {version}"
            expected = f"a little-endian GGUF file of version 2 or 3 at '{self.path}'"
            raise ModelFileError(expected, came=big, remedy="convert the model again with a current llama.cpp")
        return self._next("<QQ")

    def believable(self, count: int, least_bytes: int, what: str) -> int:
        """Give a count back if the rest of the file can hold so many things of so many bytes at least."""
        left = len(self.data) - self.at
        if count * least_bytes > left:
            raise self.bad(f"the {count:,} {what} that are announced", f"{left:,} bytes, in which they have no room")
        return count

    def entries(self, count: int) -> dict[str, tuple[int, int]]:
        """Walk the entries; give the type and the place of each value."""
        places: dict[str, tuple[int, int]] = {}
        for _ in range(self.believable(count, 13, "entries")):  # 8 for the key's length, 4 for the type, 1 at least
            key = self.text()
            (kind,) = self._next("<I")
            if key in places:
                raise self.bad("each key once", f"{shown(key)} twice")
            places[key] = (kind, self.at)
            self._skip(kind, key)
        return places

    def tensor_description(self) -> tuple[str, GgufType, tuple[int, ...], int]:
        """Read the name, type, shape and place of the next tensor."""
        name = self.text()
        (num_axes,) = self._next("<I")
        if not 1 <= num_axes <= _MOST_AXES:
            raise self.bad(f"1 to {_MOST_AXES} axes of {shown(name)}", str(num_axes))
        shape = self._next(f"<{num_axes}Q")[::-1]
        number, place = self._next("<IQ")
        kind = TYPES.get(number)
        if kind is None:
            raise ModelFileError(
                f"weights of a known type in '{self.path}'",
                came=f"type {number} for {shown(name)}",
                remedy="give another file of the same model: F16, BF16, Q8_0, Q4_K",
            )
        if min(shape) < 1 or shape[-1] % kind.block_length:
            expected = f"rows of {shown(name)} in whole blocks of {kind.block_length} numbers ({kind.name})"
            raise self.bad(expected, f"shape {shape}")
        return name, kind, shape, place

    def text(self) -> str:
        """Read the next text."""
        start, end = self._text_bounds()
        self.at = end
        try:
            return self.data[start:end].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.bad("texts in UTF-8", f"other bytes at byte {start:,}") from error

    def value(self, kind: int, at: int, key: str) -> Any:
        """Decode the value at a place that was walked over."""
        self.at = at
        if kind in _SCALARS:
            return self._next(_SCALARS[kind])[0]
        if kind == _STRING:
            return self.text()
        inner, count = self._next("<IQ")
        if inner in _SCALARS:
            return np.frombuffer(self.data, dtype=_SCALARS[inner], count=count, offset=self.at).tolist()
        if inner == _STRING:
            return self._texts(count, key)
        values = []
        for _ in range(count):
            start = self.at
            values.append(self.value(inner, start, key))
            self.at = start
            self._skip(inner, key)
        return values

    def _texts(self, count: int, key: str) -> list[str]:
        data, at, texts = self.data, self.at, []
        length = struct.Struct("<Q").unpack_from
        try:
            for _ in range(count):
                end = at + 8 + length(data, at)[0]
                texts.append(data[at + 8 : end].decode("utf-8"))
                at = end
        except UnicodeDecodeError as error:
            raise self.bad(f"texts in UTF-8 under {shown(key)}", f"other bytes in number {len(texts)}") from error
        return texts

    def _next(self, form: str) -> tuple[Any, ...]:
        end = self.at + struct.calcsize(form)
        if end > len(self.data):
            raise self.bad("a whole GGUF file", f"one that ends after {len(self.data):,} bytes, before its data")
        values = struct.unpack_from(form, self.data, self.at)
        self.at = end
        return values

    def _text_bounds(self) -> tuple[int, int]:
        (length,) = self._next("<Q")
        self.believable(length, 1, "bytes of a text")
        return self.at, self.at + length

    def _skip(self, kind: int, key: str, depth: int = 0) -> None:
        """Walk over a value, seeing that it is there."""
        if kind in _SCALARS:
            self._next(_SCALARS[kind])
        elif kind == _STRING:
            _, self.at = self._text_bounds()
        elif kind == _ARRAY and depth < _DEEPEST:
            inner, count = self._next("<IQ")
            if inner in _SCALARS:
                width = struct.calcsize(_SCALARS[inner])
                self.at += width * self.believable(count, width, f"numbers of {shown(key)}")
            elif inner == _STRING:
                self._skip_texts(self.believable(count, 8, f"texts of {shown(key)}"), key)
            else:
                for _ in range(self.believable(count, 12, f"arrays of {shown(key)}")):
                    self._skip(inner, key, depth + 1)
        else:
            raise self.bad(f"a value of a known type for {shown(key)}", f"type {kind}, {depth} arrays deep")

    def _skip_texts(self, count: int, key: str) -> None:
        data, at, size = self.data, self.at, len(self.data)
        length = struct.Struct("<Q").unpack_from
        for _ in range(count):  # a vocabulary has hundreds of thousands: this loop is what opening a file takes
            if at + 8 <= size:
                at += 8 + length(data, at)[0]
            else:
                at = size + 1
            if at > size:
                raise self.bad(f"the {count:,} texts of {shown(key)}", f"a file that ends at byte {size:,}")
        self.at = at


def _opened(path: Path) -> tuple[io.FileIO, mmap.mmap]:
    try:
        file = io.FileIO(path)
        return file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        said = error.strerror if isinstance(error, OSError) else "it is empty"
        raise ModelFileError(
            f"a GGUF file at '{path}'", came=f"none that can be read ({said})", remedy="check the path"
        ) from error


def _placed(
    reader: _Reader, described: list[tuple[str, GgufType, tuple[int, ...], int]], data_start: int, alignment: int
) -> dict[str, GgufTensor]:
    """The tensors by name, each inside the file, aligned, and in a place of its own."""
    tensors: dict[str, GgufTensor] = {}
    size = len(reader.data)
    for name, kind, shape, place in described:
        count = 1
        for length in shape:
            count *= length
        tensor = GgufTensor(name, kind, shape, data_start + place, count // kind.block_length * kind.block_bytes)
        if name in tensors:
            raise reader.bad("each tensor once", f"{shown(name)} twice")
        if place % alignment:
            raise reader.bad(f"tensors at multiples of {alignment} bytes", f"{shown(name)} at {place:,}")
        if tensor.start + tensor.num_bytes > size:
            came = f"a file of {size:,} bytes, while {shown(name)} ends at byte {tensor.start + tensor.num_bytes:,}"
            raise reader.bad("a whole GGUF file", came)
        tensors[name] = tensor
    in_order = sorted(tensors.values(), key=lambda tensor: tensor.start)
    for before, after in pairwise(in_order):
        if before.start + before.num_bytes > after.start:
            raise reader.bad("tensors apart", f"{shown(before.name)} and {shown(after.name)} in one place")
    return tensors
