"""ZIP archives, which .docx, .odt and .epub files are: their members read as streams, never unpacked to disk.

A member's name is looked up among the names and is never a path on this machine. What is read is counted against the
size of the archive (packed.py), whatever the archive says of itself.

In: a path.  Out: `Archive`.  Used by: docx.py, odt.py, epub.py, kinds.py.  Read next: xml_stream.py.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pellucid.data.pieces import printable
from pellucid.data.reading.packed import READ_BYTES, Allowance, seekable
from pellucid.errors import DataError

SMALL_BYTES = 16 << 20  # lists of contents and chapters; a chapter of 16 MB would be ten books
ENCRYPTED = 1  # a bit of a member's flags


class Archive:
    """An open archive; a context manager.

    Args:
        path: The file, which may itself be packed.

    Raises:
        DataError: if it is no whole ZIP archive.
    """

    def __init__(self, path: Path) -> None:
        self.name = printable(str(path))
        self._file = seekable(path)
        size = self._file.seek(0, 2)
        self._allowance = Allowance(self.name, size)
        try:
            with self._sound():
                self._zip = zipfile.ZipFile(self._file)
        except DataError:
            self._file.close()
            raise
        self.names = frozenset(self._zip.namelist())

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: Any) -> None:
        self._zip.close()
        self._file.close()

    def blocks(self, member: str) -> Iterator[bytes]:
        """Read a member.

        Args:
            member: Its name in the archive.

        Yields:
            Its bytes.

        Raises:
            DataError: if it is missing, damaged, under a password, or unpacks to more than text can.
        """
        if member not in self.names:
            raise self.damaged(f"no “{printable(member)}” in it")
        with self._sound():
            if self._zip.getinfo(member).flag_bits & ENCRYPTED:
                raise DataError(f"to read {self.name}", came="a password around it", remedy="save it without one")
            with self._zip.open(member) as file:
                while block := file.read(READ_BYTES):
                    self._allowance.take(len(block))
                    yield block

    def small(self, member: str) -> bytes:
        """Read a member that is known to be small at once.

        Raises:
            DataError: as `blocks`, and if it is not small.
        """
        data = b""
        for block in self.blocks(member):
            data += block
            if len(data) > SMALL_BYTES:
                raise self.damaged(f"a “{printable(member)}” of over {SMALL_BYTES >> 20} MiB")
        return data

    def damaged(self, what: str) -> DataError:
        """The sentence for an archive that is not what it should be."""
        return DataError(f"a whole document in {self.name}", came=what, remedy="get it again, or save its text as .txt")

    @contextmanager
    def _sound(self) -> Generator[None]:
        """Turn what zipfile may raise on a hostile archive into a sentence."""
        try:
            yield
        except DataError:
            raise
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            RuntimeError,  # NotImplementedError, an unknown compression, is one
            ValueError,  # UnicodeDecodeError is one
            OverflowError,
        ) as error:
            raise self.damaged(f"a ZIP archive that is damaged or cut short (“{printable(str(error))}”)") from error
