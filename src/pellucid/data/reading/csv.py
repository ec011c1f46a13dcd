"""Tables as text (.csv, .tsv) → one column, each row a document.

The separator is the one of , ; tab | that gives the first row the most cells. If that row looks like names (short,
distinct, no numbers) it is the header; otherwise columns are called 1, 2, …. Cells may hold line ends and quotes.

In: a path.  Out: `Table`.  Used by: kinds.py.  Read next: jsonl.py.
Source: RFC 4180.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from pellucid.data.reading.columns import JUDGED_CHARACTERS, JUDGED_ROWS, choose_column
from pellucid.data.reading.lines import LONGEST_LINE, lines_of
from pellucid.data.reading.rows import RowReader
from pellucid.errors import DataError

SEPARATORS = ",;\t|"
LONGEST_NAME = 64
TABBED = re.compile(r"\.tsv(\.gz|\.zst)?$", re.IGNORECASE)


class Table(RowReader):
    """A .csv or .tsv file."""

    def documents(self) -> Iterator[Iterable[str]]:
        """Each row's text."""
        separator, names, has_header, column = self._chosen()
        self._begin(column)
        if column is None:
            return
        place = names.index(column)
        for line, cells in islice(self._cells(separator), has_header, None):
            if len(cells) > len(names):
                raise self._broken(line, f"{len(cells)} cells where the first row has {len(names)}")
            yield from self._document(cells[place] if place < len(cells) else "")

    def _column(self) -> str | None:
        return self._chosen()[3]

    def _chosen(self) -> tuple[str, list[str], bool, str | None]:
        """The separator, the columns' names, whether the first row has said them, and the column of text."""
        separator = self._separator()
        names, has_header, judged = self._judged(separator)
        column = choose_column(judged, self.options.text_column, self.name) if names else None
        return separator, names, has_header, column

    def _separator(self) -> str:
        if TABBED.search(self.path.name):
            return "\t"
        return max(SEPARATORS, key=lambda separator: self._width(separator))

    def _width(self, separator: str) -> int:
        """How many cells the first row has; 0 if it cannot be read so."""
        try:
            return len(next(self._cells(separator), (0, []))[1])
        except DataError as error:
            if isinstance(error.__cause__, csv.Error):
                return 0
            raise

    def _judged(self, separator: str) -> tuple[list[str], bool, dict[str, list[str]]]:
        """The columns' names, whether the first row has said them, and what the first rows hold."""
        cells = self._cells(separator)
        _, first = next(cells, (0, []))
        names, has_header = _names(first)
        judged: dict[str, list[str]] = {name: [] for name in names}
        characters = 0
        for row in islice(chain([] if has_header else [first], (row for _, row in cells)), JUDGED_ROWS):
            for name, cell in zip(names, row, strict=False):
                judged[name].append(cell)
                characters += len(cell)
            if characters > JUDGED_CHARACTERS:
                break
        return names, has_header, judged

    def _cells(self, separator: str) -> Iterator[tuple[int, list[str]]]:
        """Every row that is not blank, with the line it ends on."""
        lines = (line + "\n" for lines in lines_of(self.decoded(), self.name) for line in lines)
        rows = csv.reader(lines, delimiter=separator, strict=True)
        while True:
            limit = csv.field_size_limit(LONGEST_LINE)  # one for the whole process, so that it is put back each time
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                raise self._broken(rows.line_num, f"“{error}”") from error
            finally:
                csv.field_size_limit(limit)
            if any(cells):
                yield rows.line_num, cells

    def _broken(self, line: int, what: str) -> DataError:
        return DataError(
            f"a table in {self.name}",
            came=f"{what} at line {line:,}",
            remedy="check the quotes of the cells there, or save the column of text as .txt or .jsonl",
        )


def _names(first: list[str]) -> tuple[list[str], bool]:
    """The columns' names, and whether the first row has said them."""
    cells = [cell.strip() for cell in first]
    distinct = len(set(cells)) == len(cells) != 0
    is_header = distinct and all(map(_is_name, cells)) and (len(cells) > 1 or " " not in cells[0])
    return (cells, True) if is_header else ([str(place + 1) for place in range(len(cells))], False)


def _is_name(cell: str) -> bool:
    return 0 < len(cell) <= LONGEST_NAME and "\n" not in cell and not _is_number(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
