"""JSON lines (.jsonl, .ndjson) → one field, each line a document; a line may also be a string alone.

In: a path.  Out: `JsonLines`.  Used by: kinds.py.  Read next: kinds.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pellucid.data.pieces import printable
from pellucid.data.reading.columns import JUDGED_CHARACTERS, JUDGED_ROWS, choose_column
from pellucid.data.reading.lines import lines_of
from pellucid.data.reading.rows import RowReader
from pellucid.errors import DataError


class JsonLines(RowReader):
    """A .jsonl file."""

    def documents(self) -> Iterator[Iterable[str]]:
        """Each row's text."""
        column = self._column()
        self._begin(column)
        for _, value in self.values():
            text = value if isinstance(value, str) else value.get(column) if column is not None else None
            yield from self._document(text)

    def _column(self) -> str | None:
        """The field that is text; None if lines are strings."""
        judged: dict[str, list[str]] = {}
        characters = number = 0
        for number, (_, value) in enumerate(self.values(), 1):
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

    def values(self) -> Iterator[tuple[int, str | dict[str, Any]]]:
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
