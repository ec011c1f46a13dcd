"""Bytes → text: UTF-8, or the encoding that was named, or a sentence that asks; never a silent replacement.

Two things are changed, and counted so that they can be said: a byte-order mark at the start is dropped, and the line
end CR LF becomes LF. A lone CR, a mark in the middle of a file and U+0000 are data and stay.

In: blocks of bytes.  Out: `decoded`, `UnclearEncoding`.  Used by: the readers of text.  Read next: reader.py.
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from pellucid.data.pieces import printable
from pellucid.data.reading.encodings import begins_as_utf_8, guesses, marked_encoding, text_codec, unmarked_utf_16
from pellucid.data.reading.packed import SNIFFED_BYTES
from pellucid.errors import DataError

BYTE_ORDER_MARK = "\ufeff"
CONTROL_SHARE = 0.1  # text has under 1 % control characters, machine code over 20 %
TEXT_CONTROLS = b"\t\n\v\f\r\x1b\b"
SHOWN_BEFORE = 48  # bytes of the line before the one that shows that it is no UTF-8
MARK_DROPPED = "Dropped the byte-order mark at the start of {n} file{s}."
LINE_ENDS_CHANGED = "Turned {n} line end{s} from CR LF into LF."


class UnclearEncoding(DataError):
    """A file whose text is in an encoding that its reader must name."""


def decoded(blocks: Iterable[bytes], name: str, encoding: str | None, changes: Counter[str]) -> Iterator[str]:
    """Decode a file with the byte-order mark dropped and CR LF turned into LF.

    Args:
        blocks: Its bytes.
        name: What messages call it.
        encoding: None means UTF-8, and anything else is refused with what it seems to be. A name such as "latin-1" is
            believed.
        changes: What was changed is counted here.

    Yields:
        Blocks of text of no particular length.

    Raises:
        DataError: if it is not text in this encoding, with the byte's offset.
    """
    decoding = _Decoding(name, encoding)
    held_back, at_start = "", True
    for block in _with_end(blocks):
        text = held_back + decoding.decode(block)
        if at_start and text:
            at_start = False
            if text[0] == BYTE_ORDER_MARK:
                text = text[1:]
                changes[MARK_DROPPED] += 1
        held_back = ""
        if block and text.endswith("\r"):  # half of a line end, perhaps
            text, held_back = text[:-1], "\r"
        if "\r" in text:
            changes[LINE_ENDS_CHANGED] += text.count("\r\n")
            text = text.replace("\r\n", "\n")
        if text:
            yield text


def binary(head: bytes) -> bool:
    """Whether the first bytes of a file are surely no text in any encoding."""
    if marked_encoding(head) or unmarked_utf_16(head):
        return False
    controls = len(head) - len(head.translate(None, bytes(set(range(32)) - set(TEXT_CONTROLS))))
    return controls > CONTROL_SHARE * len(head) or (b"\0" in head and not begins_as_utf_8(head))


def plainly_utf_8(blocks: Iterable[bytes]) -> bool:
    """Whether a file is UTF-8 from start to end and has characters beyond ASCII, as other encodings never look.

    Args:
        blocks: Its bytes.

    Returns:
        True if so; a file in ASCII alone proves nothing.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    beyond_ascii = False
    try:
        for block in blocks:
            beyond_ascii = not decoder.decode(block).isascii() or beyond_ascii
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return beyond_ascii


class _Decoding:
    """One file's decoder, and where it is."""

    def __init__(self, name: str, encoding: str | None) -> None:
        self._name, self._encoding = name, encoding
        self._decoder = text_codec(encoding or "utf-8")("strict")
        self._lines = self._bytes = 0
        self._beyond_ascii = False

    def decode(self, block: bytes) -> str:
        """Decode the next block; an empty one is the end."""
        if self._encoding is None and not self._bytes:
            self._refuse_other_kinds(block[:SNIFFED_BYTES])
        waiting = self._decoder.getstate()[0]
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeError as error:
            raise self._undecodable(error, waiting, block) from error
        self._bytes += len(block)
        self._lines += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == 10))  # five times as fast as count
        self._beyond_ascii = self._beyond_ascii or not text.isascii()
        return text

    def _refuse_other_kinds(self, head: bytes) -> None:
        name = marked_encoding(head) or unmarked_utf_16(head)
        if name:
            raise self._asking(head, head[:800], f"what seems to be {name}")
        if binary(head):
            raise DataError(
                f"UTF-8 text in {self._name}", came="binary data", remedy="save or export it as plain text first"
            )

    def _undecodable(self, error: UnicodeError, waiting: bytes, block: bytes) -> DataError:
        """Turn a decoder's complaint into a sentence with the file, the offset and what to do."""
        if not isinstance(error, UnicodeDecodeError):  # a few codecs complain in words alone
            return DataError(
                f"{self._encoding} text in {self._name}", came=f"“{error}”", remedy="name another encoding"
            )
        data, at = waiting + block, error.start
        offset = self._bytes - len(waiting) + at
        where = f"at byte {offset:,} (line {self._lines + data[:at].count(10) + 1:,})"
        byte = f"the byte 0x{data[at]:02X} {where}"
        if self._encoding is not None:
            return DataError(f"{self._encoding} text in {self._name}", came=byte, remedy="name another encoding")
        if error.reason == "unexpected end of data":
            return DataError(
                f"UTF-8 text in {self._name}",
                came=f"an end inside a character {where}",
                remedy="the file seems cut short: get it again, or remove its last bytes",
            )
        if self._beyond_ascii or _mostly_utf_8(data):
            around = printable(data[max(0, at - 12) : at + 13].decode("cp1252", "replace").strip())
            return DataError(
                f"UTF-8 text in {self._name}",
                came=f"{byte}, after characters that were UTF-8",
                remedy=f"repair or remove that byte, near “{around}”",
            )
        start = data.rfind(b"\n", 0, at) + 1
        start = start if at - start <= SHOWN_BEFORE else at - SHOWN_BEFORE // 2
        end = data.find(b"\n", at)
        return self._asking(data[max(0, at - 4096) :], data[start : end if end >= 0 else None][:400], byte)

    def _asking(self, data: bytes, line: bytes, came: str) -> UnclearEncoding:
        """The sentence that shows how the text would read, and how to say that this is right."""
        found = guesses(data, line)
        if not found:
            return UnclearEncoding(
                f"UTF-8 text in {self._name}",
                came=f"{came}, which fits no encoding known here",
                remedy="name the encoding with --encoding NAME, or save the file as UTF-8",
            )
        best, *others = found
        others_read = "".join(f"; if it should say “{o.line}”, use --encoding {o.encoding}" for o in others)
        return UnclearEncoding(
            f"UTF-8 text in {self._name}",
            came=f"{came}; read as {best.encoding} it would say “{best.line}”",
            remedy=f"if that is right, repeat the command with --encoding {best.encoding}{others_read}",
        )


def _mostly_utf_8(data: bytes) -> bool:
    """Whether more characters beyond ASCII are sound UTF-8 than are not: a damaged file, not another encoding."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    return sum(not c.isascii() for c in text) > 2 * bad


def _with_end(blocks: Iterable[bytes]) -> Iterator[bytes]:
    yield from blocks
    yield b""
