"""A file on disk → its bytes in blocks, unpacked where gzip or zstd is around them.

Packing is known by its first bytes, whatever the file is called, and may be two deep. What it unpacks to is counted:
past 64 MiB, more than 200 bytes for each packed one are refused, since text never packs so well and a small file could
otherwise fill memory and disk.

In: a path.  Out: `byte_blocks`, `first_bytes`, `seekable`, `Allowance`.  Used by: every reader.
Read next: encodings.py.
"""

from __future__ import annotations

import itertools
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from pellucid.data.pieces import printable
from pellucid.errors import DataError

READ_BYTES = 1 << 20
SNIFFED_BYTES = 1 << 16
FREE_BYTES = 64 << 20
LARGEST_RATIO = 200  # xz brings books to a quarter and logs to a fiftieth; deflate can reach 1032, zstd 40,000
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
ZSTD_FED_BYTES = 1 << 10  # a block of zstd gives at most 128 KiB for 4 bytes: so much at once, 32 MiB come out at most
ZSTD_WINDOW_BYTES = 1 << 27  # what zstd itself unpacks without being asked for more memory
MARK_BYTES = 4  # what tells a packed file
MOST_LAYERS = 2


class Allowance:
    """Counts what a packed file unpacks to, and refuses a bomb.

    Args:
        name: What the file is called in the refusal.
        packed_bytes: Size of the packed file.
    """

    def __init__(self, name: str, packed_bytes: int) -> None:
        self._name, self._packed, self._unpacked = name, packed_bytes, 0

    def take(self, size: int) -> None:
        """Count `size` more unpacked bytes.

        Raises:
            DataError: if the file unpacks to more than text can.
        """
        self._unpacked += size
        if self._unpacked > max(FREE_BYTES, LARGEST_RATIO * self._packed):
            raise DataError(
                f"{self._name} to unpack to at most {LARGEST_RATIO} times its size",
                came=f"more than {self._unpacked >> 20:,} MiB out of {self._packed:,} bytes, as only a trap does",
                remedy="if it is sound, unpack it yourself and give the text",
            )


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading bytes; what the system says against it becomes a sentence.

    Raises:
        DataError: if it cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(
            f"to read {printable(str(path))}", came=f"“{error.strerror}”", remedy="check the path and its permissions"
        ) from error


def byte_blocks(path: Path) -> Generator[bytes]:
    """Read a file from start to end.

    Args:
        path: The file, packed or not.

    Yields:
        Its unpacked bytes, in blocks of no particular size and none empty.

    Raises:
        DataError: if it cannot be read, is damaged, or unpacks to more than text can.
    """
    name = printable(str(path))
    with open_file(path) as file:
        blocks: Iterator[bytes] = _read(file, name)
        for _ in range(MOST_LAYERS + 1):
            first = b""
            while len(first) < MARK_BYTES and (block := next(blocks, b"")):
                first += block
            blocks = itertools.chain([first], blocks) if first else iter(())
            unpack = _unpacker(first)
            if unpack is None:
                yield from blocks
                return
            blocks = _unpacked(blocks, unpack, name, Allowance(name, path.stat().st_size))
    raise DataError(
        f"text packed at most {MOST_LAYERS} times in {name}", came="yet another packing", remedy="unpack it yourself"
    )


def first_bytes(path: Path) -> bytes:
    """Read the first 64 KiB of what is inside a file.

    Args:
        path: The file, packed or not.

    Returns:
        The unpacked bytes.
    """
    head = b""
    with closing(byte_blocks(path)) as blocks:
        for block in blocks:
            head += block
            if len(head) >= SNIFFED_BYTES:
                break
    return head[:SNIFFED_BYTES]


def seekable(path: Path) -> BinaryIO:
    """Open what is inside a file for reading in any order, as a ZIP archive needs.

    Args:
        path: The file, packed or not.

    Returns:
        The file itself, or if it is packed a temporary copy that vanishes when closed.
    """
    file = open_file(path)
    start = file.read(MARK_BYTES)
    file.seek(0)
    if _unpacker(start) is None:
        return file
    file.close()
    copy = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=FREE_BYTES))  # noqa: SIM115 (the caller closes it)
    with closing(byte_blocks(path)) as blocks:
        for block in blocks:
            copy.write(block)
    copy.seek(0)
    return copy


def is_packed(path: Path) -> bool:
    """Whether gzip or zstd is around a file."""
    with open_file(path) as file:
        return _unpacker(file.read(MARK_BYTES)) is not None


def _read(file: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        while block := file.read(READ_BYTES):
            yield block
    except OSError as error:
        raise DataError(
            f"to read {name}", came=f"“{error.strerror}”", remedy="check the disk it is on, and the path"
        ) from error


def _unpacker(start: bytes) -> Callable[[Iterable[bytes]], Iterator[bytes]] | None:
    if start.startswith(GZIP):
        return _gunzip
    if start.startswith(ZSTD) or (start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] < 0x60):  # a frame to be skipped
        return _unzstd
    return None


def _unpacked(
    blocks: Iterable[bytes], unpack: Callable[[Iterable[bytes]], Iterator[bytes]], name: str, allowance: Allowance
) -> Iterator[bytes]:
    try:
        for block in unpack(blocks):
            allowance.take(len(block))
            if block:
                yield block
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise DataError(
            f"a whole {'gzip' if unpack is _gunzip else 'zstd'} file in {name}",
            came=f"one that is damaged or cut short (“{error}”)",
            remedy="get it again",
        ) from error


def _gunzip(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack gzip members one after another; zeros after the last are padding."""
    member = None
    for block in blocks:
        data = block
        while data:
            if member is None:
                if not data.strip(b"\0"):
                    break
                member = zlib.decompressobj(wbits=31)  # 31: with gzip's header and checksum
            yield member.decompress(data, READ_BYTES)
            data = member.unconsumed_tail
            if member.eof:
                data, member = member.unused_data, None
    if member is not None:
        raise EOFError("it ends too early")


def _unzstd(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack zstd frames one after another."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    frame = None
    for block in blocks:
        for start in range(0, len(block), ZSTD_FED_BYTES):
            data = block[start : start + ZSTD_FED_BYTES]
            while data:
                frame = frame or unpacker.decompressobj()
                yield frame.decompress(data)
                data = b""
                if frame.eof:
                    data, frame = frame.unused_data, None
    if frame is not None:
        raise EOFError("it ends too early")
