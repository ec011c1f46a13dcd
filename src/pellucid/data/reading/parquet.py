"""Parquet tables (.parquet) → one column, each row a document, read some thousand rows at a time.

pyarrow does the work, imported when such a file is met (`pip install pellucid[parquet]`). Nothing else of the table
than the column of text is read.

In: a path.  Out: `ParquetTable`.  Used by: kinds.py.  Read next: kinds.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pellucid.data.pieces import printable
from pellucid.data.reading.columns import JUDGED_ROWS, choose_column
from pellucid.data.reading.rows import RowReader
from pellucid.errors import DataError

ROWS_TOGETHER = 1024  # of long documents, a few megabytes


class ParquetTable(RowReader):
    """A .parquet file."""

    def documents(self) -> Iterator[Iterable[str]]:
        """Each row's text."""
        column = self._column()
        self._begin(column)
        if column is None:
            return
        for (text,) in self._values([column]):
            yield from self._document(text)

    def _column(self) -> str | None:
        """The column that is text; None if there are no rows."""
        arrow, names = _library("pyarrow", self.name), list[str]()
        with self._opened() as table:
            for field in table.schema_arrow:
                kind = field.type
                if arrow.types.is_string(kind) or arrow.types.is_large_string(kind) or arrow.types.is_dictionary(kind):
                    names.append(field.name)
            if not table.metadata.num_rows:
                return None
        judged: dict[str, list[str]] = {name: [] for name in names}
        for row in islice(self._values(names), JUDGED_ROWS):
            for name, value in zip(names, row, strict=True):
                if isinstance(value, str):
                    judged[name].append(value)
        return choose_column(judged, self.options.text_column, self.name)

    def _values(self, names: list[str]) -> Iterator[tuple[Any, ...]]:
        """Some columns of each row."""
        with self._opened() as table:
            try:
                for batch in table.iter_batches(ROWS_TOGETHER, columns=names, use_threads=False):
                    yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
            except (ValueError, OSError) as error:  # pyarrow's own errors are of these kinds
                raise self._damaged(error) from error

    def _opened(self) -> Any:
        try:
            return _library("pyarrow.parquet", self.name).ParquetFile(self.path)
        except (ValueError, OSError) as error:
            if isinstance(error, DataError):
                raise
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DataError:
        said = printable(" ".join(str(error).split()))[:120]
        return DataError(
            f"a whole Parquet table in {self.name}", came=f"one that is damaged (“{said}”)", remedy="get it again"
        )


def _library(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DataError(
            f"pyarrow, to read {name}",
            came="a Python without it",
            remedy="install it with: pip install 'pellucid[parquet]'",
        ) from error
