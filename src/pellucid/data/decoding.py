"""One file of bytes → pieces of text: UTF-8 or a sentence about what it is instead, never a silent replacement.

A file is read in blocks and handed on in pieces of at most 65,536 characters, so that a gigabyte never sits in
memory. Two things are changed, and counted so that they can be said: a byte-order mark at the start is dropped, and
the line end CR LF becomes LF. A lone CR, a mark in the middle of a file and U+0000 are data and stay.

In: a path.  Out: `TextFile`, `cut_pieces`, `printable`.  Used by: sources.py.  Read next: sources.py.
"""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from pellucid.errors import DataError

PIECE_CHARACTERS = 1 << 16  # small enough to encode many side by side, large enough that cuts are rare
READ_BYTES = 1 << 20
SNIFFED_BYTES = 1 << 16
CONTROL_SHARE = 0.1  # text has under 1 % control characters, UTF-16 of Latin letters 50 %, machine code over 20 %
BYTE_ORDER_MARK = "\ufeff"

ENCODING_MARKS = (  # the longer marks first: UTF-32's begins with UTF-16's
    (b"\xff\xfe\x00\x00", "UTF-32", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32", "UTF-32"),
    (b"\xff\xfe", "UTF-16 (little-endian)", "UTF-16"),
    (b"\xfe\xff", "UTF-16 (big-endian)", "UTF-16"),
)
BINARY_MARKS = (
    (b"\x89PNG\r\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF87a", "a GIF picture"),
    (b"GIF89a", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (.docx, .odt and .epub files are such archives)"),
    (b"\xd0\xcf\x11\xe0", "an old Word or Office document"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\xfd7zXZ\x00", "an xz file"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "a database"),
    (b"\x89PELTOK\n", "a token file of pellucid"),
)
TEXT_CONTROLS = b"\t\n\v\f\r\x1b\b"


def printable(text: str) -> str:
    r"""Return text in which every control, format and undecodable character is spelled out, safe for a terminal.

    Args:
        text: Anything: a file name, a stretch of somebody's file.

    Returns:
        The same text with unprintable characters as escapes.

    Example:
        >>> printable("caf\u00e9\x1b[31m")
        'café\\x1b[31m'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class TextFile:
    """One file, read as text from start to end as often as wanted.

    Args:
        path: The file.
        encoding: None means UTF-8, and anything else is refused with what it seems to be. A name such as "latin-1"
            is believed.

    Raises:
        DataError: if the encoding has no such name.

    Attributes:
        marks_dropped: 1 if the last complete reading dropped a byte-order mark.
        crlf_changed: Line ends that the last complete reading turned from CR LF to LF.
    """

    def __init__(self, path: Path, *, encoding: str | None = None) -> None:
        self.path, self.name, self.encoding = path, printable(str(path)), encoding
        self.marks_dropped = self.crlf_changed = 0
        self._lines = self._bytes_decoded = 0
        self._beyond_ascii = False
        self._decoder = text_codec(encoding or "utf-8")

    def looks_binary(self) -> str | None:
        """Say what the file is if it is surely not UTF-8 text ("a PNG picture"), judged by its first 64 KiB."""
        kind = self._kind(self._head())
        return kind[0] if kind else None

    def pieces(self) -> Iterator[str]:
        """Yield the text in pieces, as `cut_pieces` cuts it.

        Yields:
            Pieces of 1 to 65,536 characters.

        Raises:
            DataError: if the file cannot be opened or is not text in this encoding, with the byte's offset.
        """
        if self.encoding is None and (kind := self._kind(self._head())):
            raise self._refusal(*kind)
        yield from cut_pieces(self._decoded())

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise DataError(
                f"to read {self.name}", came=f"“{error.strerror}”", remedy="check the path and its permissions"
            ) from error

    def _head(self) -> bytes:
        with self._open() as file:
            return file.read(SNIFFED_BYTES)

    def _decoded(self) -> Iterator[str]:
        """Yield decoded blocks with the byte-order mark dropped and CR LF turned into LF."""
        decoder = self._decoder("strict")
        self.marks_dropped = self.crlf_changed = self._lines = self._bytes_decoded = 0
        self._beyond_ascii = False
        held_back, at_start = "", True
        with self._open() as file:
            while True:
                block = file.read(READ_BYTES)
                waiting = decoder.getstate()[0]
                try:
                    text = held_back + decoder.decode(block, final=not block)
                except UnicodeError as error:
                    raise self._undecodable(error, waiting, block) from error
                self._bytes_decoded += len(block)
                if at_start and text:
                    at_start = False
                    if text[0] == BYTE_ORDER_MARK:
                        text, self.marks_dropped = text[1:], 1
                held_back = ""
                if block and text.endswith("\r"):  # half of a line end, perhaps
                    text, held_back = text[:-1], "\r"
                if "\r" in text:
                    self.crlf_changed += text.count("\r\n")
                    text = text.replace("\r\n", "\n")
                self._lines += text.count("\n")
                self._beyond_ascii = self._beyond_ascii or not text.isascii()
                if text:
                    yield text
                if not block:
                    return

    def _undecodable(self, error: UnicodeError, waiting: bytes, block: bytes) -> DataError:
        """Turn a decoder's complaint into a sentence with the file, the offset and what to do."""
        if not isinstance(error, UnicodeDecodeError):  # a few codecs complain in words alone
            return DataError(f"{self.encoding} text in {self.name}", came=f"“{error}”", remedy="name another encoding")
        data = waiting + block
        at = error.start
        offset = self._bytes_decoded - len(waiting) + at
        line = self._lines + data[:at].count(b"\n") + 1
        byte, where = f"0x{data[at]:02X}", f"at byte {offset:,} (line {line:,})"
        if self.encoding is not None:
            return DataError(
                f"{self.encoding} text in {self.name}", came=f"the byte {byte} {where}", remedy="name another encoding"
            )
        if error.reason == "unexpected end of data":
            return DataError(
                f"UTF-8 text in {self.name}",
                came=f"an end inside a character {where}",
                remedy="the file seems cut short: get it again, or remove its last bytes",
            )
        around = printable(data[max(0, at - 12) : at + 13].decode("cp1252", "replace").strip())
        if self._beyond_ascii or not data[:at].isascii():
            return DataError(
                f"UTF-8 text in {self.name}",
                came=f"the byte {byte} {where}, after characters that were UTF-8",
                remedy=f"repair or remove that byte, near “{around}”",
            )
        return DataError(
            f"UTF-8 text in {self.name}",
            came=f"the byte {byte} {where}; read as Windows-1252 or Latin-1 it would be “{around}”",
            remedy=self._conversion("WINDOWS-1252"),
        )

    def _kind(self, head: bytes) -> tuple[str, str] | None:
        """What the file is instead of UTF-8 text, and the name of its encoding if it is text all the same."""
        for mark, words, name in ENCODING_MARKS:
            if head.startswith(mark):
                return f"text in {words}", name
        for mark, words in BINARY_MARKS:
            if head.startswith(mark):
                return words, ""
        zeros, even_zeros = head.count(0), head[::2].count(0)
        controls = len(head) - len(head.translate(None, bytes(set(range(32)) - set(TEXT_CONTROLS))))
        if controls <= CONTROL_SHARE * len(head):
            return ("binary data", "") if zeros and not _begins_as_utf8(head) else None
        if zeros > 0.2 * len(head) and even_zeros in (0, zeros):
            order = "big" if even_zeros else "little"
            return f"what seems to be text in UTF-16 ({order}-endian)", f"UTF-16{order[0].upper()}E"
        return "binary data", ""

    def _refusal(self, words: str, encoding: str) -> DataError:
        remedy = self._conversion(encoding) if encoding else "give its text: save or export it as plain text first"
        return DataError(f"UTF-8 text in {self.name}", came=words, remedy=remedy)

    def _conversion(self, encoding: str) -> str:
        quoted = printable(shlex.quote(str(self.path)))
        target = printable(shlex.quote(str(self.path.with_suffix(".utf8.txt"))))
        return f"save it as UTF-8 in an editor, or convert it: iconv -f {encoding} -t UTF-8 {quoted} > {target}"


def cut_pieces(blocks: Iterable[str]) -> Iterator[str]:
    r"""Cut a text that comes in blocks of any size into pieces that do not depend on the blocks.

    A cut is placed between two lines that touch with black characters, where GPT-2's and every similar rule of
    cutting text into words has a boundary too, so that tokens do not depend on the pieces either.

    Args:
        blocks: The text.

    Yields:
        Pieces of 1 to 65,536 characters that join to the text.

    Example:
        >>> [len(piece) for piece in cut_pieces(["two words\n" * 5000, "two words\n" * 5000])]
        [65530, 34470]
    """
    rest = ""
    for block in blocks:
        rest += block
        start = 0
        while len(rest) - start > PIECE_CHARACTERS:
            end = _cut_place(rest, start, start + PIECE_CHARACTERS)
            yield rest[start:end]
            start = end
        rest = rest[start:]
    if rest:
        yield rest


def text_codec(encoding: str) -> Callable[[str], codecs.IncrementalDecoder]:
    """Find the decoder of a text encoding by name.

    Args:
        encoding: A name such as "utf-8" or "latin-1".

    Returns:
        What makes its incremental decoder.

    Raises:
        DataError: if there is no such encoding of text.
    """
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, ValueError) as error:
        raise DataError(
            "the name of a text encoding", came=f"“{printable(encoding)}”", remedy='try "utf-16", "latin-1" or "cp1252"'
        ) from error
    if not codec._is_text_encoding or codec.incrementaldecoder is None:
        raise DataError(
            "the name of a text encoding", came=f"“{encoding}”, which turns bytes into bytes", remedy='try "latin-1"'
        )
    return codec.incrementaldecoder


def _begins_as_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return True


def _cut_place(text: str, start: int, limit: int) -> int:
    """Where to cut text[start:limit]: between two lines if possible, else after a space, else at the limit."""
    lowest = start + PIECE_CHARACTERS // 2
    last_newline = at = text.rfind("\n", lowest, limit)
    while at > lowest:
        if not text[at - 1].isspace() and not text[at + 1 : at + 2].isspace():
            return at + 1
        at = text.rfind("\n", lowest, at)
    if last_newline >= 0:
        return last_newline + 1
    space = text.rfind(" ", lowest, limit)
    return space if space > start else limit  # before the space: the words of GPT-2's rule begin with it
