"""A dataset of the Hugging Face hub by its name, `hub:NAME[:CONFIG][:SPLIT]` → one column, each row a document.

The library `datasets` does the work (`pip install pellucid[hub]`): it streams, goes by HF_ENDPOINT and HF_HUB_OFFLINE,
and runs no code that comes with a dataset. A text is read several times; what the first reading got is kept in a
temporary file, packed, so that the network is asked once.

In: a name.  Out: `HubDataset`, `is_hub_name`.  Used by: sources.py.  Read next: sources.py.
"""

from __future__ import annotations

import importlib
import io
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any

import zstandard

from pellucid.data.pieces import printable
from pellucid.data.reading import ReadingOptions
from pellucid.data.reading.columns import JUDGED_ROWS, choose_column
from pellucid.data.reading.rows import text_of_row
from pellucid.errors import DataError

PREFIX = "hub:"
USUAL_SPLIT = "train"
LENGTH_BYTES = 8


def is_hub_name(source: str | os.PathLike[str]) -> bool:
    """Whether somebody means a dataset of the hub.

    Example:
        >>> is_hub_name("hub:roneneldan/TinyStories"), is_hub_name("book.txt")
        (True, False)
    """
    return isinstance(source, str) and source.startswith(PREFIX)


class HubDataset:
    """A dataset, read as often as wanted.

    Args:
        source: hub:NAME, hub:NAME:CONFIG or hub:NAME:CONFIG:SPLIT; an empty CONFIG is the dataset's own.
        options: What the user said about columns.

    Raises:
        DataError: if the name is not of that form.

    Attributes:
        name: As given, safe for a terminal.
        changes: What the last complete reading left out: sentences with {n} and {s}, and their numbers.
    """

    rows = True
    told_kind = ""

    def __init__(self, source: str, options: ReadingOptions = ReadingOptions()) -> None:  # noqa: B008 (frozen)
        self.name, self._options = printable(source), options
        path, *rest = source.removeprefix(PREFIX).split(":")
        if not path or len(rest) > 2:
            raise DataError(
                "hub:NAME, hub:NAME:CONFIG or hub:NAME:CONFIG:SPLIT",
                came=self.name,
                remedy="write it so, as in hub:roneneldan/TinyStories",
            )
        self._path = path
        self._config, self._split = ([part or None for part in rest] + [None, None])[:2]
        self.changes: Counter[str] = Counter()
        self._kept: IO[bytes] | None = None

    def documents(self) -> Iterator[Iterable[str]]:
        """Each row's text."""
        if self._kept is not None:
            for text in _texts_in(self._kept):
                yield [text]
            return
        self.changes.clear()
        kept = tempfile.TemporaryFile()  # noqa: SIM115 (as long as this object)
        with zstandard.ZstdCompressor().stream_writer(kept, closefd=False) as packed:
            for value in self._values():
                text = text_of_row(value, self.changes)
                if text is not None:
                    encoded = text.encode("utf-8", "surrogatepass")
                    packed.write(len(encoded).to_bytes(LENGTH_BYTES, "little") + encoded)
                    yield [text]
        self._kept = kept  # only now is it whole

    def _values(self) -> Iterator[Any]:
        """The column of text."""
        try:
            rows = self._loaded()
            judged: dict[str, list[str]] = {}
            for row in islice(rows, JUDGED_ROWS):
                for name, value in row.items():
                    if isinstance(value, str):
                        judged.setdefault(name, []).append(value)
            column = choose_column(judged, self._options.text_column, self.name)
            self.changes[f"Read the column “{printable(column)}” of {{n}} dataset{{s}}."] += 1
            yield from (row[column] for row in rows.select_columns([column]))
        except DataError:
            raise
        except Exception as error:  # of many libraries: files, formats, the network
            said = printable(" ".join(str(error).split()))[:200]
            raise DataError(
                f"the dataset {self.name}",
                came=f"{type(error).__name__}: “{said}”",
                remedy="check the name, its config and split, and the network; HF_ENDPOINT names a mirror,"
                " HF_HUB_OFFLINE=1 uses what was downloaded before",
            ) from error

    def _loaded(self) -> Any:
        """The split, to be iterated over: streamed, or offline from what is on the disk."""
        library = _library(self.name)
        library.disable_progress_bars()
        on_disk = library.config.HF_HUB_OFFLINE and not os.path.exists(self._path)
        loaded = library.load_dataset(self._path, self._config, split=self._split, streaming=not on_disk)
        if self._split is not None:
            return loaded
        if USUAL_SPLIT not in loaded and len(loaded) > 1:
            written = f"{PREFIX}{self._path}:{self._config or ''}:{next(iter(loaded))}"
            raise DataError(
                f"a split of {self.name} to read",
                came=f"several: {', '.join(map(printable, loaded))}",
                remedy=f"name one, as in {printable(written)}",
            )
        return loaded[USUAL_SPLIT if USUAL_SPLIT in loaded else next(iter(loaded))]


def _texts_in(kept: IO[bytes]) -> Iterator[str]:
    kept.seek(0)
    with io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(kept, closefd=False)) as unpacked:
        while length := unpacked.read(LENGTH_BYTES):
            yield unpacked.read(int.from_bytes(length, "little")).decode("utf-8", "surrogatepass")


def _library(name: str) -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        raise DataError(
            f"the library datasets, to read {name}",
            came="a Python without it",
            remedy="install it with: pip install 'pellucid[hub]'",
        ) from error
