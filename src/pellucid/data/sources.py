"""Files and folders → one text in documents, read as a stream as often as needed, with a fingerprint.

    files, folders ──open_sources──▶ Sources ──pieces()──▶ Piece, Piece, …    (never more than 65,536 characters each)

A document is a file. The first reading counts, hashes and refuses; each later reading is checked against it, so that
text that changes under a run is noticed. A file given twice, or two files with the same text, are read once: a copy
on the other side of the held-out cut would make the loss look better than it is.

In: paths, or texts in memory.  Out: `Sources`, `Document`, `Piece`.  Used by: split.py, corpus.py, the command line.
Read next: split.py.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pellucid.data.decoding import TextFile, cut_pieces, printable
from pellucid.errors import DataError

CODE_POINTS = 0x110000  # Unicode's

PROSE_SUFFIXES = frozenset((".txt", ".text", ".md", ".markdown", ".rst", ".org", ".tex", ".adoc"))
CODE_ENDINGS = """py pyi c h cc cpp hpp cs java kt scala go rs swift js jsx ts tsx rb php pl lua r jl hs ml el lisp scm
    clj ex exs erl f90 sql sh bash zsh ps1 bat vim css toml yaml yml ini cfg"""
CODE_SUFFIXES = frozenset(f".{ending}" for ending in CODE_ENDINGS.split())
READ_IN_FOLDERS = PROSE_SUFFIXES | CODE_SUFFIXES | {""}
FOLDERS_LEFT_OUT = frozenset(("__pycache__", "node_modules", "site-packages"))


@dataclass(frozen=True)
class Document:
    """A whole text and its name."""

    name: str
    text: str


@dataclass(frozen=True)
class Piece:
    """A stretch of one document; `opens` is true for its first."""

    text: str
    opens: bool


@dataclass(frozen=True)
class DocumentFacts:
    """What the first reading found out about one document."""

    name: str
    characters: int
    utf8_bytes: int
    digest: bytes


class _TextInMemory:
    """A document that is a string already."""

    def __init__(self, document: Document) -> None:
        self.name, self._text = printable(document.name), document.text

    def pieces(self) -> Iterator[str]:
        return cut_pieces([self._text])


_Readable = TextFile | _TextInMemory


class Sources:
    """Documents in a fixed order, surveyed once, readable as often as wanted.

    Args:
        readables: The documents. Empty ones, and ones whose text came before, are left out and told in `notes`.
        notes: Sentences about what was done on the way here.

    Raises:
        DataError: if there is no text at all, or a document is not text.

    Attributes:
        documents: The facts of each document.
        characters: Length of the concatenation in characters (code points).
        utf8_bytes: Its length in UTF-8.
        alphabet: Its distinct characters, sorted.
        fingerprint: SHA-256 over the documents' SHA-256, in hexadecimal: the same texts in the same order.
        notes: Sentences for the user: what was changed, and what was left out.

    Example:
        >>> sources = sources_of_texts([Document("a", "to be"), Document("b", "or not")])
        >>> sources.characters, sources.alphabet, [piece.text for piece in sources.pieces()]
        (11, ' benort', ['to be', 'or not'])
    """

    def __init__(self, readables: Iterable[_Readable], *, notes: Sequence[str] = ()) -> None:
        kept: list[tuple[_Readable, DocumentFacts]] = []
        first_with: dict[bytes, str] = {}
        empty, copies = [], []
        used = np.zeros(CODE_POINTS, dtype=bool)
        marks = crlf = 0
        for readable in readables:
            facts = _survey(readable, used)
            if not facts.characters:
                empty.append(facts.name)
                continue
            if facts.digest in first_with:
                copies.append(f"{facts.name} (as {first_with[facts.digest]})")
                continue
            first_with[facts.digest] = facts.name
            kept.append((readable, facts))
            if isinstance(readable, TextFile):
                marks, crlf = marks + readable.marks_dropped, crlf + readable.crlf_changed
        if not kept:
            raise DataError("some text", came=f"nothing in {_some(empty)}", remedy="give a file with text in it")
        self._readables = tuple(readable for readable, _ in kept)
        self.documents = tuple(facts for _, facts in kept)
        self.characters = sum(facts.characters for facts in self.documents)
        self.utf8_bytes = sum(facts.utf8_bytes for facts in self.documents)
        self.alphabet = "".join(map(chr, np.flatnonzero(used)))
        self.fingerprint = hashlib.sha256(b"".join(facts.digest for facts in self.documents)).hexdigest()
        self.notes = (*notes, *_sentences(marks, crlf, empty, copies))

    def pieces(self) -> Iterator[Piece]:
        """Read everything once more.

        Yields:
            The documents' pieces in order.

        Raises:
            DataError: if a document is not what it was at the first reading.
        """
        for readable, facts in zip(self._readables, self.documents, strict=True):
            digest, opens = hashlib.sha256(), True
            for text in readable.pieces():
                digest.update(text.encode("utf-8", "surrogatepass"))
                yield Piece(text, opens)
                opens = False
            if digest.digest() != facts.digest:
                raise DataError(
                    f"{facts.name} to stay as it was", came="other text than a moment ago", remedy="start again"
                )


def open_sources(paths: Iterable[str | os.PathLike[str]], *, encoding: str | None = None) -> Sources:
    """Find and survey the text in files and folders.

    A file that is named is read whatever it is called. In a folder, files that end as text, Markdown or code end are
    read in the order of their paths; hidden files and folders, other kinds and binary files are left out, and told.

    Args:
        paths: Files and folders.
        encoding: None for UTF-8, or the name of the encoding of all files.

    Returns:
        The documents, one a file.

    Raises:
        DataError: if a path does not exist, a folder has nothing to read, or a file is not text.
    """
    found: dict[Path, TextFile] = {}
    notes = [f"Read as {encoding}, as asked."] if encoding else []
    twice: list[str] = []
    for given in map(_given, paths):
        left_out: Counter[str] = Counter()
        inside = list(_files_in(given, left_out)) if given.is_dir() else [_named(given)]
        before = len(found)
        for path in inside:
            reader = TextFile(path, encoding=encoding)
            if given.is_dir() and encoding is None and (kind := reader.looks_binary()) and not kind.startswith("text"):
                left_out[path.suffix.lower() or path.name] += 1
            elif path.resolve() in found:
                twice.append(reader.name)
            else:
                found[path.resolve()] = reader
        if given.is_dir() and len(found) == before and not twice:
            raise DataError(
                f"text, Markdown or code in the folder {printable(str(given))}",
                came=f"only {_kinds(left_out)}" if left_out else "nothing",
                remedy="name the files themselves, or another folder",
            )
        if left_out:
            notes.append(f"Left out {_kinds(left_out)} in {printable(str(given))}.")
    if twice:
        notes.append(f"Given twice, read once: {_some(twice)}.")
    return Sources(found.values(), notes=notes)


def sources_of_texts(documents: Iterable[Document], *, notes: Sequence[str] = ()) -> Sources:
    """Make sources of texts that are in memory already, taken as they are.

    Args:
        documents: The texts.
        notes: Sentences for the user.

    Returns:
        The documents.
    """
    return Sources(map(_TextInMemory, documents), notes=notes)


def read_documents(paths: Iterable[str | os.PathLike[str]], *, encoding: str | None = None) -> Iterator[Document]:
    """Read documents whole, one at a time: for looking at a text, not for training on it.

    Args:
        paths: Files and folders.
        encoding: None for UTF-8.

    Yields:
        Each document with its text.

    Raises:
        DataError: as `open_sources`.
    """
    sources = open_sources(paths, encoding=encoding)
    for readable in sources._readables:
        yield Document(readable.name, "".join(readable.pieces()))


def _survey(readable: _Readable, used: np.ndarray) -> DocumentFacts:
    """Read one document once: its length, its digest, and its characters marked in `used`."""
    characters = utf8_bytes = 0
    digest = hashlib.sha256()
    for piece in readable.pieces():
        try:
            encoded = piece.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"characters in {readable.name}",
                came=f"half of one (U+{ord(piece[error.start]):04X}, a lone surrogate)",
                remedy="repair the text, or name the encoding it really has",
            ) from error
        characters += len(piece)
        utf8_bytes += len(encoded)
        digest.update(encoded)
        used[np.frombuffer(piece.encode("utf-32-le"), dtype="<u4")] = True
    return DocumentFacts(readable.name, characters, utf8_bytes, digest.digest())


def _named(path: Path) -> Path:
    """Check a path that the user wrote."""
    name = printable(str(path))
    if not path.exists():
        raise DataError(
            "a file or folder with text", came=f"{name}, which does not exist", remedy="check the spelling and the path"
        )
    if not path.is_file():
        raise DataError(
            "a file or folder with text",
            came=f"{name}, a pipe or device that can be read only once",
            remedy="save its text in a file first",
        )
    return path


def _given(path: str | os.PathLike[str]) -> Path:
    """The path, unless it is empty, as an unset variable of a shell is: that would mean the folder one stands in."""
    if not os.fspath(path):
        raise DataError(
            "the name of a file or folder", came="an empty one", remedy="name it, or give . for this folder"
        )
    return Path(path)


def _files_in(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    """Yield the readable files of a folder in the order of their paths, counting the others by their ending."""
    found = []
    for parent, folders, names in os.walk(folder, onerror=_unreadable_folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in FOLDERS_LEFT_OUT]
        found += [Path(parent, name) for name in names if not name.startswith(".")]
    for path in sorted(found, key=lambda path: path.parts):
        if path.suffix.lower() in READ_IN_FOLDERS and path.is_file():
            yield path
        else:
            left_out[path.suffix.lower() or path.name] += 1


def _unreadable_folder(error: OSError) -> None:
    raise DataError(
        f"to read the folder {printable(str(error.filename))}",
        came=f"“{error.strerror}”",
        remedy="check the path and its permissions",
    ) from error


def _kinds(left_out: Counter[str]) -> str:
    count = left_out.total()
    kinds = ", ".join(f"{printable(kind)} {n:,}" for kind, n in left_out.most_common(4))
    return f"{count:,} file{'s' * (count > 1)} of other kinds ({kinds}{', …' * (len(left_out) > 4)})"


def _some(names: Sequence[str]) -> str:
    """A few of many names."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "") or "no file"


def _sentences(marks: int, crlf: int, empty: Sequence[str], copies: Sequence[str]) -> Iterator[str]:
    if marks:
        yield f"Dropped the byte-order mark at the start of {marks:,} file{'s' * (marks > 1)}."
    if crlf:
        yield f"Turned {crlf:,} line end{'s' * (crlf > 1)} from CR LF into LF."
    if empty:
        yield f"Left out as empty: {_some(empty)}."
    if copies:
        yield f"Left out as copies: {_some(copies)}."
