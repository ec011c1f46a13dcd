"""What tables have in common: one column is text, and each row of it is a document.

In: rows.  Out: `RowReader`, to build on; `text_of_row`.  Used by: csv.py, jsonl.py, parquet.py, ../hub.py.
Read next: csv.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pellucid.data.pieces import printable
from pellucid.data.reading.decoding import LINE_ENDS_CHANGED
from pellucid.data.reading.reader import FileReader

WITHOUT_TEXT = "Left out {n} row{s} of tables without text."


def text_of_row(value: Any, changes: Counter[str]) -> str | None:
    """The text in a row's cell, with line ends as everywhere; None, and counted, if there is none.

    Example:
        >>> text_of_row("a\\r\\nb", Counter()), text_of_row(7, Counter())
        ('a\\nb', None)
    """
    if not isinstance(value, str) or not value.strip():
        changes[WITHOUT_TEXT] += 1
        return None
    changes[LINE_ENDS_CHANGED] += value.count("\r\n")
    return value.replace("\r\n", "\n")


class RowReader(FileReader):
    """A file whose rows are documents."""

    rows = True

    @abstractmethod
    def _column(self) -> str | None:
        """The column that is text; None if there is none to choose."""

    def check(self) -> None:
        """Look for the column of text."""
        self._column()

    def blocks(self) -> Iterator[str]:
        """The text of all rows."""
        return (text for document in self.documents() for text in document)

    def _begin(self, column: str | None) -> None:
        """Forget what was changed while looking, and tell the column."""
        self.changes.clear()
        if column is not None:
            self.changes[f"Read the column “{printable(column)}” of {{n}} table{{s}}."] += 1

    def _document(self, value: Any) -> Iterator[list[str]]:
        """A row's document, if there is text in it."""
        text = text_of_row(value, self.changes)
        if text is not None:
            yield [text]
