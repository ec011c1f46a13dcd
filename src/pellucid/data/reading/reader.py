"""What every reader of a file is: its documents, in blocks of text, as often as wanted.

In: a path, `ReadingOptions`.  Out: `FileReader`.  Used by: one file a format, kinds.py.  Read next: plain.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pellucid.data.pieces import printable
from pellucid.data.reading.decoding import decoded
from pellucid.data.reading.encodings import text_codec
from pellucid.data.reading.packed import byte_blocks


@dataclass(frozen=True)
class ReadingOptions:
    """How files are to be read, where the files do not say it themselves."""

    encoding: str | None = None
    """The encoding of plain text; None is UTF-8, and everything else is asked about."""
    text_column: str | None = None
    """Which column of tables is text; None is the only one that can be."""


class FileReader(ABC):
    """One file, read as text from start to end as often as wanted.

    Args:
        path: The file.
        options: What the user said about it.

    Raises:
        DataError: if the encoding has no such name.

    Attributes:
        name: Its name, safe for a terminal.
        changes: What the last complete reading changed or left out: sentences with {n} and {s}, and their numbers.
        told_kind: What is to be said of its format, if its name says another.
        rows: Whether each document is a row of a table; otherwise the file is one document.
    """

    rows: bool = False

    def __init__(self, path: Path, options: ReadingOptions = ReadingOptions()) -> None:
        if options.encoding:
            text_codec(options.encoding)
        self.path, self.name, self.options = path, printable(str(path)), options
        self.changes: Counter[str] = Counter()
        self.told_kind = ""

    def documents(self) -> Iterator[Iterable[str]]:
        """Read the file; a document must be read before the next is asked for.

        Yields:
            Each document as blocks of text of no particular length.

        Raises:
            DataError: if the file cannot be read as what it is.
        """
        self.changes.clear()
        yield self.blocks()

    def check(self) -> None:
        """Look whether it is clear what to read; most formats say it themselves.

        Raises:
            DataError: if the user must say more.
        """
        return

    @abstractmethod
    def blocks(self) -> Iterator[str]:
        """The text of the whole file in blocks."""

    def decoded(self) -> Iterator[str]:
        """The file's bytes as text, line ends and marks made even."""
        return decoded(byte_blocks(self.path), self.name, self.options.encoding, self.changes)


def told(changes: Counter[str]) -> list[str]:
    """Changes as sentences.

    Args:
        changes: Sentences with {n} and {s}, and their numbers.

    Returns:
        The sentences with the numbers in them.

    Example:
        >>> told(Counter({"Left out {n} row{s} without text.": 1200}))
        ['Left out 1,200 rows without text.']
    """
    return [
        sentence.replace("{n}", f"{number:,}").replace("{s}", "s" if number > 1 else "")
        for sentence, number in changes.items()
        if number
    ]
