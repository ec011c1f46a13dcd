"""Files and folders → one text in documents, read as a stream as often as needed, with a fingerprint.

    files, folders ──open_sources──▶ Sources ──pieces()──▶ Piece, Piece, …    (never more than 65,536 characters each)

A document is a file, or a row of a table. The first reading counts, hashes and refuses; each later reading is checked
against it, so that text that changes under a run is noticed. A file given twice, or two documents with the same text,
are read once: a copy on the other side of the held-out cut would make the loss look better than it is.

In: paths, or texts in memory.  Out: `Sources`, `Document`, `Piece`.  Used by: split.py, corpus.py, the command line.
Read next: split.py.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pellucid.data.boilerplate import Boilerplate, WithoutBoilerplate
from pellucid.data.folders import LeftOut, files_in, named_path
from pellucid.data.hub import HubDataset, is_hub_name
from pellucid.data.pieces import cut_pieces, printable
from pellucid.data.reading import (
    FileReader,
    ReadingOptions,
    UnclearColumn,
    UnclearEncoding,
    Unreadable,
    byte_blocks,
    open_reader,
    plainly_utf_8,
    told,
)
from pellucid.data.survey import Readable, Survey
from pellucid.errors import DataError

HELD_OUT_PERCENT = 5
MOST_HELD_OUT_PERCENT = 50
OnProgress = Callable[[int, int | None], None]


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


class TextInMemory:
    """A document that is a string already."""

    rows = False

    def __init__(self, document: Document) -> None:
        self.name, self._text = printable(document.name), document.text

    def documents(self) -> Iterator[Iterable[str]]:
        """The one document."""
        yield [self._text]


class Sources:
    """Documents in a fixed order, surveyed once, readable as often as wanted.

    Args:
        readables: The documents. Empty ones, and ones whose text came before, are left out and told in `notes`.
        notes: Sentences about what was done on the way here.
        drop_boilerplate: Whether licences, page numbers and running heads are left out; they are told in any case.
        held_out_percent: How much the split holds out; 0 gives everything to training.
        hold_out_documents: Whether the split may hold out whole documents, if there are enough of them.
        on_progress: Called during each reading with the characters read so far, and of how many; at the first reading
            of None.

    Raises:
        DataError: if there is no text at all, or a document is not text.

    Attributes:
        documents: The facts of each document.
        characters: Length of the concatenation in characters (code points).
        utf8_bytes: Its length in UTF-8.
        alphabet: Its distinct characters, sorted.
        fingerprint: SHA-256 over the documents' SHA-256, in hexadecimal: the same texts in the same order.
        held_out_percent: As given, like `hold_out_documents`: what split.py goes by.
        boilerplate: The sentence about what seems no part of the text; empty if nothing does.
        notes: Sentences for the user: what was changed, what was left out, what is odd.

    Example:
        >>> sources = sources_of_texts([Document("a", "to be"), Document("b", "or not")])
        >>> sources.characters, sources.alphabet, [piece.text for piece in sources.pieces()]
        (11, ' benort', ['to be', 'or not'])
    """

    def __init__(
        self,
        readables: Iterable[Readable],
        *,
        notes: Sequence[str] = (),
        drop_boilerplate: bool = False,
        held_out_percent: int = HELD_OUT_PERCENT,
        hold_out_documents: bool = False,
        on_progress: OnProgress = lambda characters, of: None,
    ) -> None:
        if not 0 <= held_out_percent <= MOST_HELD_OUT_PERCENT:
            raise DataError(
                f"0 to {MOST_HELD_OUT_PERCENT} percent of the text to be held out",
                came=f"{held_out_percent}",
                remedy=f"choose {HELD_OUT_PERCENT}, or 0 to use everything",
            )
        self.held_out_percent, self.hold_out_documents = held_out_percent, hold_out_documents
        self._on_progress = on_progress
        readables = list(readables)
        survey = _surveyed(readables, on_progress)
        found = survey.boilerplate
        if drop_boilerplate and any(found):
            readables = [_without(readable, what) for readable, what in zip(readables, found, strict=True)]
            survey = _surveyed(readables, on_progress)
        self._readables = tuple(readables)
        self.documents = survey.documents()
        if not len(self.documents):
            raise DataError(
                "some text",
                came=f"nothing in {_some([readable.name for readable in readables])}",
                remedy="give a file with text in it",
            )
        self.characters = int(self.documents.characters.sum())
        self.utf8_bytes = int(self.documents.utf8_bytes.sum())
        self.alphabet = "".join(map(chr, np.flatnonzero(survey.used)))
        self.fingerprint = hashlib.sha256(self.documents.joined_digests()).hexdigest()
        self.boilerplate = "".join(_found([what for what in found if what], dropped=drop_boilerplate))
        told = filter(None, [self.boilerplate])
        self.notes = (*notes, *_notes_of(readables), *self._left_out(), *told, *survey.notes())

    def pieces(self) -> Iterator[Piece]:
        """Read everything once more.

        Yields:
            The documents' pieces in order.

        Raises:
            DataError: if a document is not what it was at the first reading.
        """
        number = characters = 0
        for readable in self._readables:
            for blocks in readable.documents():
                if self.documents.is_kept(number):
                    digest, opens = hashlib.sha256(), True
                    for text in cut_pieces(blocks):
                        digest.update(text.encode("utf-8", "surrogatepass"))
                        yield Piece(text, opens)
                        opens = False
                        characters += len(text)
                        self._on_progress(characters, self.characters)
                    if digest.digest() != self.documents.digest(number):
                        raise _changed(readable.name)
                number += 1
        if number != self.documents.surveyed:
            raise _changed(", ".join(readable.name for readable in self._readables[:3]))

    def _left_out(self) -> Iterator[str]:
        documents = self.documents
        if len(documents.empty):
            yield f"Left out as empty: {_some([documents.name(n) for n in documents.empty.tolist()])}."
        if documents.copies:
            copies = [f"{documents.name(n)} (as {documents.name(original)})" for n, original in documents.copies]
            yield f"Left out as copies: {_some(copies)}."


def open_sources(
    paths: Iterable[str | os.PathLike[str]],
    *,
    encoding: str | None = None,
    text_column: str | None = None,
    drop_boilerplate: bool = False,
    held_out_percent: int = HELD_OUT_PERCENT,
    on_progress: OnProgress = lambda characters, of: None,
) -> Sources:
    """Find and survey the text in files and folders.

    A file that is named is read whatever it is called. In a folder, files whose names end as a known format are read
    in the order of their paths; hidden files and folders, other kinds, binary files and tables without a clear
    column of text are left out, and told.

    Args:
        paths: Files and folders, and datasets as hub:NAME, which come last.
        encoding: None for UTF-8, or the name of the encoding of all files that do not say theirs; in a folder, of those
            that are not plainly UTF-8.
        text_column: Which column of tables is text; None for the only one that can be.
        drop_boilerplate: Whether to leave out licences, page numbers and running heads.
        held_out_percent: How much the split holds out.
        on_progress: As in `Sources`.

    Returns:
        The documents, one a file, or one a row of a table.

    Raises:
        DataError: if a path does not exist, a folder has nothing to read, or a file is not text.
    """
    options = ReadingOptions(encoding, text_column)
    found: dict[Path, FileReader] = {}
    notes = [f"Read as {encoding}, as asked."] if encoding else []
    twice: list[str] = []
    paths = list(paths)
    datasets = [HubDataset(str(path), options) for path in dict.fromkeys(filter(is_hub_name, paths))]
    for given in (named_path(path) for path in paths if not is_hub_name(path)):
        left_out, unclear = LeftOut(), list[UnclearColumn]()
        before = len(found)
        for reader in _readers(given, options, left_out, unclear):
            if reader.path.resolve() in found:
                twice.append(reader.name)
            else:
                found[reader.path.resolve()] = reader
        if given.is_dir() and len(found) == before and not twice:
            if unclear:
                raise unclear[0]
            raise DataError(
                f"text, documents or code in the folder {printable(str(given))}",
                came=f"only {left_out}" if left_out else "nothing",
                remedy="name the files themselves, or another folder",
            )
        if left_out:
            notes.append(f"Left out {left_out} in {printable(str(given))}.{left_out.advice}")
        notes += [f"Left out a table: {error}" for error in unclear[:3]]
    if twice:
        notes.append(f"Given twice, read once: {_some(twice)}.")
    return Sources(
        [*found.values(), *datasets],
        notes=notes,
        drop_boilerplate=drop_boilerplate,
        held_out_percent=held_out_percent,
        hold_out_documents=True,
        on_progress=on_progress,
    )


def sources_of_texts(
    documents: Iterable[Document], *, notes: Sequence[str] = (), held_out_percent: int = HELD_OUT_PERCENT
) -> Sources:
    """Make sources of texts that are in memory already, taken as they are.

    Args:
        documents: The texts.
        notes: Sentences for the user.
        held_out_percent: How much the split holds out.

    Returns:
        The documents.
    """
    return Sources(map(TextInMemory, documents), notes=notes, held_out_percent=held_out_percent)


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
    texts: list[str] = []
    names = iter(sources.documents)
    for piece in sources.pieces():
        if piece.opens and texts:
            yield Document(next(names).name, "".join(texts))
            texts = []
        texts.append(piece.text)
    yield Document(next(names).name, "".join(texts))


def _readers(
    given: Path, options: ReadingOptions, left_out: LeftOut, unclear: list[UnclearColumn]
) -> Iterator[FileReader]:
    """The readers of a path; of a folder, those of its files that can be read."""
    if not given.is_dir():
        yield open_reader(given, options)
        return
    for path in files_in(given, left_out):
        try:
            reader = open_reader(path, options)
            if options.encoding and plainly_utf_8(byte_blocks(path)):
                reader = open_reader(path, replace(options, encoding=None))
                reader.told_kind = reader.told_kind or "Read {n} file{s} as UTF-8, which no other encoding looks like."
            reader.check()
        except Unreadable:
            left_out.add(path)
        except UnclearColumn as error:
            unclear.append(error)
        else:
            yield reader


def _surveyed(readables: Sequence[Readable], on_progress: OnProgress) -> Survey:
    """Read all; files in an unclear encoding are refused together, by the sentence about the first."""
    survey, unclear = Survey(lambda characters: on_progress(characters, None)), list[UnclearEncoding]()
    for readable in readables:
        try:
            survey.read(readable)
        except UnclearEncoding as error:
            unclear.append(error)
    if len(unclear) > 1:
        first, more = unclear[0], len(unclear) - 1
        raise UnclearEncoding(
            first.expected,
            came=f"{first.came}, and {more:,} more file{'s' * (more > 1)} that {'are' if more > 1 else 'is'} not UTF-8",
            remedy=first.remedy,
        ) from first
    if unclear:
        raise unclear[0]
    return survey


def _without(readable: Readable, found: Boilerplate | None) -> Readable:
    return WithoutBoilerplate(readable, found) if found and isinstance(readable, FileReader) else readable


def _notes_of(readables: Iterable[Readable]) -> list[str]:
    """What the readers changed, added up."""
    changes: Counter[str] = Counter()
    for readable in readables:
        if isinstance(readable, FileReader | WithoutBoilerplate | HubDataset):
            changes[readable.told_kind] += bool(readable.told_kind)
            changes.update(readable.changes)
    return told(changes)


def _found(found: Sequence[Boilerplate], *, dropped: bool) -> Iterator[str]:
    """One line about what is no part of the text."""
    parts = []
    if licence := sum(what.licence for what in found):
        parts.append(f"a licence around the text ({licence:,} characters)")
    if numbers := sum(what.page_numbers for what in found):
        example = next(what.example for what in found if what.page_numbers)
        parts.append(f"{numbers:,} page numbers (“{example}”)")
    heads = Counter[str]()
    for what in found:
        heads.update(what.heads)
        heads.update(what.numbered_heads)
    if heads:
        parts.append(f"{heads.total():,} running heads (“{printable(heads.most_common(1)[0][0])}”)")
    if parts:
        done = "left out, as asked" if dropped else "--drop-boilerplate leaves it out"
        yield f"Found what seems no part of the text: {', '.join(parts)}; {done}."


def _changed(name: str) -> DataError:
    return DataError(f"{name} to stay as it was", came="other text than a moment ago", remedy="start again")


def _some(names: Sequence[str]) -> str:
    """A few of many names."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "") or "no file"
