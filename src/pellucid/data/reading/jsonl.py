"""JSON lines (.jsonl, .ndjson) → one field, each line a document; a line may also be a string alone.

In: a path.  Out: `JsonLines`.  Used by: kinds.py.  Read next: kinds.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pellucid.data.pieces import printable
from pellucid.data.reading.columns import JUDGED_CHARACTERS, JUDGED_ROWS, choose_column
from pellucid.data.reading.csv import WITHOUT_TEXT
from pellucid.data.reading.decoding import LINE_ENDS_CHANGED
from pellucid.data.reading.lines import lines_of
from pellucid.data.reading.reader import FileReader
from pellucid.errors import DataError


class JsonLines(FileReader):
    """A .jsonl file."""

    rows = True

    def check(self) -> None:
        """Look for the column of text."""
        self._column()

    def blocks(self) -> Iterator[str]:
        """The text of all rows."""
        return (text for document in self.documents() for text in document)

    def documents(self) -> Iterator[Iterable[str]]:
        """Each row's text."""
        self.changes.clear()
        column = self._column()
        self.changes.clear()
        if column is not None:
            self.changes[f"Read the column “{printable(column)}” of {{n}} table{{s}}."] += 1
        for _, value in self._values():
            text = value if isinstance(value, str) else value.get(column) if column is not None else None
            if isinstance(text, str) and text.strip():
                self.changes[LINE_ENDS_CHANGED] += text.count("\r\n")
                yield [text.replace("\r\n", "\n")]
            else:
                self.changes[WITHOUT_TEXT] += 1

    def _column(self) -> str | None:
        """The field that is text; None if lines are strings."""
        judged: dict[str, list[str]] = {}
        characters = number = 0
        for number, (_, value) in enumerate(self._values(), 1):
            if isinstance(value, str):
                if number == 1:
                    return None
                continue
            for name, text in value.items():
                if isinstance(text, str):
                    judged.setdefault(name, []).append(text)
                    characters += len(text)
            if number >= JUDGED_ROWS or characters > JUDGED_CHARACTERS:
                break
        return choose_column(judged, self.options.text_column, self.name) if number else None

    def _values(self) -> Iterator[tuple[int, str | dict[str, Any]]]:
        """Every line that is not blank: its number, and the string or object on it."""
        lines = (line for lines in lines_of(self.decoded(), self.name) for line in lines)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                value = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise self._broken(number, f"“{printable(str(error))}”") from error
            if not isinstance(value, str | dict):
                raise self._broken(number, f"neither an object nor a string but {type(value).__name__}")
            yield number, value

    def _broken(self, number: int, what: str) -> DataError:
        return DataError(
            f"a JSON object in line {number:,} of {self.name}", came=what, remedy="repair or remove that line"
        )
