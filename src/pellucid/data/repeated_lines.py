"""How many lines of a text came before, word for word, counted exactly within bounded memory.

A hash of each line, eight bytes, goes into a file. The file is then read as often as it takes to look at a slice of all
possible hashes at a time that fits in memory: equal lines have equal hashes, and so are in the same slice.

In: hashes of lines.  Out: `HashFile`.  Used by: prepare_folder.py.  Read next: card.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

HASHES_TOGETHER = 4_000_000  # sorted at once: 64 MB
READ_TOGETHER = 1 << 20


class HashFile:
    """A file of hashes that can be written on after a kill.

    Args:
        path: Where.
        count: How many hashes are kept of what is there.

    Use it as a context manager.

    Example:
        >>> import tempfile
        >>> hashes = HashFile(Path(tempfile.mkdtemp(), "lines"))
        >>> hashes.add(np.array([7, 8, 7, 7], dtype=np.uint64))
        >>> hashes.repeated()
        2
    """

    def __init__(self, path: Path, *, count: int = 0) -> None:
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(8 * count)
        self._file.seek(8 * count)
        self.count = count

    def add(self, hashes: np.ndarray) -> None:
        """Append hashes.

        Args:
            hashes: Of type uint64.
        """
        self._file.write(hashes.astype("<u8").tobytes())
        self.count += len(hashes)

    def save(self) -> int:
        """Bring all to the disk; returns how many there are."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.count

    def __enter__(self) -> HashFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def repeated(self) -> int:
        """How many hashes came before."""
        slices = max(1, -(-self.count // HASHES_TOGETHER))
        return sum(self._repeated_within(number, slices) for number in range(slices))

    def _repeated_within(self, number: int, slices: int) -> int:
        self._file.flush()
        self._file.seek(0)
        kept = []
        while block := self._file.read(8 * READ_TOGETHER):
            hashes = np.frombuffer(block, dtype="<u8")
            places = (hashes >> np.uint64(48)) * np.uint64(slices) >> np.uint64(16)  # by the highest 16 bits
            kept.append(hashes[places == number])
        inside = np.sort(np.concatenate([np.zeros(0, dtype="<u8"), *kept]))
        return int(np.count_nonzero(inside[1:] == inside[:-1]))
