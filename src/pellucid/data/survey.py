"""The first reading of a text: its documents counted and hashed, its letters noted, what is odd in it found.

A table may have millions of documents, so what is kept of each is 56 bytes in arrays, not an object.

In: readers.  Out: `Survey`, `DocumentFacts`, `Documents`.  Used by: sources.py.  Read next: folders.py.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, overload, runtime_checkable

import numpy as np

from pellucid.data.boilerplate import Boilerplate, BoilerplateFinder
from pellucid.data.look_alikes import LookAlikes
from pellucid.data.pieces import cut_pieces
from pellucid.errors import DataError

CODE_POINTS = 0x110000  # Unicode's
DIGEST_BYTES = 32


@runtime_checkable
class Readable(Protocol):
    """Something with documents in it: a file, a text in memory."""

    name: str
    rows: bool

    def documents(self) -> Iterator[Iterable[str]]:
        """Each document as blocks of text; one must be read before the next is asked for."""
        ...


@dataclass(frozen=True)
class DocumentFacts:
    """What the first reading found out about one document."""

    name: str
    characters: int
    utf8_bytes: int
    digest: bytes


class Survey:
    """Reads readables once, one after another.

    Args:
        on_progress: Called with the characters read so far.

    Attributes:
        used: For each code point, whether the text has it.
        boilerplate: What was found in each readable that is one document.
    """

    def __init__(self, on_progress: Callable[[int], None] = lambda characters: None) -> None:
        self._on_progress, self._read = on_progress, 0
        self.used = np.zeros(CODE_POINTS, dtype=bool)
        self.boilerplate: list[Boilerplate | None] = []
        self._look_alikes = LookAlikes(self.used)
        self._names: list[tuple[str, bool]] = []
        self._first: list[int] = []  # the number of each readable's first document
        self._characters, self._bytes = array("q"), array("q")
        self._digests = bytearray()

    def read(self, readable: Readable) -> None:
        """Read one more.

        Args:
            readable: What comes next.

        Raises:
            DataError: if it is not text.
        """
        first = len(self._characters)
        finder: BoilerplateFinder | None = None
        for blocks in readable.documents():
            finder = None if readable.rows else BoilerplateFinder()
            self._document(blocks, readable.name, finder)
        self._first.append(first)
        self._names.append((readable.name, readable.rows))
        self.boilerplate.append(finder.found() if finder else None)

    def documents(self) -> Documents:
        """All documents, which of them are kept, and why others are not."""
        return Documents(self._names, self._first, self._characters, self._bytes, self._digests)

    def notes(self) -> Iterator[str]:
        """What is to be told of the letters."""
        return self._look_alikes.notes()

    def _document(self, blocks: Iterable[str], name: str, finder: BoilerplateFinder | None) -> None:
        characters = utf8_bytes = 0
        digest = hashlib.sha256()
        for piece in cut_pieces(blocks):
            try:
                encoded = piece.encode("utf-8")
            except UnicodeEncodeError as error:
                raise DataError(
                    f"characters in {name}",
                    came=f"half of one (U+{ord(piece[error.start]):04X}, a lone surrogate)",
                    remedy="repair the text, or name the encoding it really has",
                ) from error
            characters += len(piece)
            utf8_bytes += len(encoded)
            digest.update(encoded)
            if piece.isascii():
                self.used[np.frombuffer(encoded, dtype=np.uint8)] = True
            else:
                codes = np.frombuffer(piece.encode("utf-32-le"), dtype="<u4")
                self.used[codes] = True
                self._look_alikes.look(piece, codes)
            if finder:
                finder.look(piece, encoded)
            self._read += len(piece)
            self._on_progress(self._read)
        self._characters.append(characters)
        self._bytes.append(utf8_bytes)
        self._digests += digest.digest()


class Documents(Sequence[DocumentFacts]):
    """The documents that are kept, in order; an object is made of one when it is asked for.

    Empty ones, and ones whose text came before, are not kept.

    Args:
        names: Of each readable, and whether its documents are rows.
        first: The number of each readable's first document.
        characters: Of each document.
        utf8_bytes: Of each document.
        digests: Of each document, joined.

    Attributes:
        kept: The numbers of the documents that are kept.
        characters: Their lengths.
        utf8_bytes: Their lengths in UTF-8.
        empty: The numbers of those without text.
        copies: For each copy, its number and that of the one it copies.
        surveyed: How many documents were read, kept or not.
    """

    def __init__(
        self, names: list[tuple[str, bool]], first: list[int], characters: array, utf8_bytes: array, digests: bytearray
    ) -> None:
        self._names, self._first = names, first
        lengths = np.frombuffer(characters, dtype=np.int64) if characters else np.zeros(0, dtype=np.int64)
        sizes = np.frombuffer(utf8_bytes, dtype=np.int64) if utf8_bytes else lengths
        self._digests = np.frombuffer(bytes(digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES)
        words = self._digests.view(np.uint64)
        _, original, group = np.unique(words[:, 0], return_index=True, return_inverse=True)
        original = original[group]  # the first document with the same beginning of a digest
        is_copy = (words == words[original]).all(axis=1) & (original != np.arange(len(lengths)))
        self.surveyed = len(lengths)
        self.empty = np.flatnonzero(lengths == 0)
        self.copies = [(n, int(original[n])) for n in np.flatnonzero(is_copy & (lengths > 0)).tolist()]
        self.kept = np.flatnonzero(~is_copy & (lengths > 0))
        self.characters, self.utf8_bytes = lengths[self.kept], sizes[self.kept]

    def __len__(self) -> int:
        return len(self.kept)

    @overload
    def __getitem__(self, place: int) -> DocumentFacts: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[DocumentFacts]: ...

    def __getitem__(self, place: int | slice) -> DocumentFacts | Sequence[DocumentFacts]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        number = int(self.kept[place])
        size = int(self.characters[place]), int(self.utf8_bytes[place])
        return DocumentFacts(self.name(number), *size, self.digest(number))

    def name(self, number: int) -> str:
        """What a document is called, kept or not: its file's name, and its row in it."""
        readable = bisect_right(self._first, number) - 1
        name, rows = self._names[readable]
        return f"{name} (text {number - self._first[readable] + 1:,})" if rows else name

    def digest(self, number: int) -> bytes:
        """A document's SHA-256."""
        return self._digests[number].tobytes()

    def is_kept(self, number: int) -> bool:
        """Whether a document is kept."""
        place = int(np.searchsorted(self.kept, number))
        return place < len(self.kept) and int(self.kept[place]) == number

    def joined_digests(self) -> bytes:
        """The SHA-256 of all that are kept, one after another."""
        return self._digests[self.kept].tobytes()

    def short_hashes(self) -> np.ndarray:
        """The first eight bytes of the SHA-256 of each that is kept, as whole numbers."""
        return np.ascontiguousarray(self._digests[self.kept, :8]).view("<u8").reshape(-1)
