"""The tensors of a safetensors file, each read when it is asked for, straight into the memory where it is needed.

    8 bytes: length of the header · header: JSON, name → number type, shape, place · the numbers

The library judges the file, but it gives tensors that are mapped: whoever writes over the file would change a running
model, and whoever shortens it would kill the process. Here every byte is read once, and nothing is held twice.

In: a path.  Out: names, shapes, number types; tensors.  Used by: model_files, convert.  Read next: tensor_file.py.
"""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pellucid.errors import ModelFileError

NUMBER_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""What a file calls them."""

_TOGETHER = 1 << 20
"""Numbers that are converted together: few enough to stay in a cache of the processor."""


@dataclass(frozen=True)
class Stored:
    """What a file says of a tensor."""

    kind: str
    """The number type, as the file calls it."""
    shape: tuple[int, ...]
    start: int
    """The first of its bytes in the file."""


class StoredTensors:
    """An open safetensors file.

    Args:
        path: The file. It stays open as long as this object lives: what replaces it later is not looked at.

    Raises:
        ModelFileError: if it is missing, cut short, or of another kind (a pickle is never opened).

    Example:
        >>> import tempfile
        >>> from safetensors.torch import save_file
        >>> path = Path(tempfile.mkdtemp()) / "two.safetensors"
        >>> save_file({"ones": torch.ones(2), "nine": torch.tensor(9)}, path)
        >>> stored = StoredTensors(path)
        >>> sorted(stored), stored.shape("ones"), stored.read("nine")
        (['nine', 'ones'], (2,), tensor(9))
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with safe_open(path, framework="pt"):  # sizes and places are seen to fit each other and the file
                pass
            self._file = path.open("rb", buffering=0)
            weakref.finalize(self, self._file.close)
            length = int.from_bytes(self._file.read(8), "little")
            header = msgspec.json.decode(self._file.read(length), type=dict[str, dict])
            self.about = {
                name: Stored(about["dtype"], tuple(about["shape"]), 8 + length + about["data_offsets"][0])
                for name, about in header.items()
                if name != "__metadata__"
            }
        except (OSError, SafetensorError, msgspec.MsgspecError, LookupError, TypeError) as error:
            told = "no such file" if isinstance(error, FileNotFoundError) else f"one that cannot be read ({error})"
            raise self._broken(told) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.about)

    def __len__(self) -> int:
        return len(self.about)

    def __contains__(self, name: object) -> bool:
        return name in self.about

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self.about[name].shape

    def number_type(self, name: str) -> torch.dtype:
        """A tensor's number type.

        Raises:
            ModelFileError: if it is one of those in which quantised weights are kept.
        """
        kind = self.about[name].kind
        if kind not in NUMBER_TYPES:
            raise ModelFileError(
                f"weights stored as {', '.join(list(NUMBER_TYPES)[1:4])} in '{self.path}'",
                came=f"{name} as {kind}",
                remedy="use a release of the model that is not quantised",
            )
        return NUMBER_TYPES[kind]

    def read(self, name: str) -> Tensor:
        """A tensor as it is stored, in memory of its own."""
        tensor = torch.empty(self.shape(name), dtype=self.number_type(name))
        self.read_into(name, tensor)
        return tensor

    @torch.no_grad()
    def read_into(self, name: str, target: Tensor) -> None:
        """Fill a tensor of the same shape, which may be of another number type."""
        if target.device.type != "cpu" or not target.is_contiguous():
            target.copy_(self.read(name))
            return
        flat, kind = target.detach().reshape(-1), self.number_type(name)
        self._file.seek(self.about[name].start)
        if kind == target.dtype:
            self._read(flat, name)
            return
        for part in flat.split(_TOGETHER):
            stored = torch.empty(len(part), dtype=kind)
            self._read(stored, name)
            part.copy_(stored)

    def _read(self, flat: Tensor, name: str) -> None:
        left = flat.view(torch.uint8).numpy().data if len(flat) else memoryview(b"")
        while left:
            count = self._file.readinto(left)
            if not count:
                raise self._broken(f"a file that ends within {name}")
            left = left[count:]

    def _broken(self, came: str) -> ModelFileError:
        return ModelFileError(
            f"a whole safetensors file at '{self.path}'", came=came, remedy="copy it again from where it came"
        )
