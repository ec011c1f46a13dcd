"""Paths that a user wrote → the files in them, and what was left out and why.

In: paths.  Out: `named_path`, `files_in`, `LeftOut`.  Used by: sources.py.  Read next: hub.py.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pellucid.data.pieces import printable
from pellucid.data.reading import kind_of_name
from pellucid.errors import DataError

FOLDERS_LEFT_OUT = frozenset(("__pycache__", "node_modules", "site-packages"))
SAVED_AS_TEXT_FIRST = frozenset((".pdf", ".doc", ".rtf"))


class LeftOut:
    """Counts the files of a folder that are not read, by their ending."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()

    def add(self, path: Path) -> None:
        """Count one more."""
        self._kinds[path.suffix.lower() or path.name] += 1

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def __str__(self) -> str:
        count = self._kinds.total()
        kinds = ", ".join(f"{printable(kind)} {n:,}" for kind, n in self._kinds.most_common(4))
        return f"{count:,} file{'s' * (count > 1)} of other kinds ({kinds}{', …' * (len(self._kinds) > 4)})"

    @property
    def advice(self) -> str:
        """What would make some of them readable."""
        kinds = sorted(SAVED_AS_TEXT_FIRST & self._kinds.keys())
        return f" To read {' and '.join(kinds)} files, save them as text first." if kinds else ""


def named_path(path: str | os.PathLike[str]) -> Path:
    """Check a path that the user wrote.

    Args:
        path: A file or folder.

    Returns:
        The same.

    Raises:
        DataError: if it is empty, as an unset variable of a shell is, if nothing is there, or a pipe is.
    """
    if not os.fspath(path):
        raise DataError(
            "the name of a file or folder", came="an empty one", remedy="name it, or give . for this folder"
        )
    found, name = Path(path), printable(os.fspath(path))
    if not found.exists():
        raise DataError(
            "a file or folder with text", came=f"{name}, which does not exist", remedy="check the spelling and the path"
        )
    if not found.is_file() and not found.is_dir():
        raise DataError(
            "a file or folder with text",
            came=f"{name}, a pipe or device that can be read only once",
            remedy="save its text in a file first",
        )
    return found


def files_in(folder: Path, left_out: LeftOut) -> Iterator[Path]:
    """Find the files of a folder whose names promise text.

    Args:
        folder: Where to look, and in the folders in it; hidden ones, and those that programs fill, are left out.
        left_out: The others are counted here.

    Yields:
        Files in the order of their paths.

    Raises:
        DataError: if a folder cannot be read.
    """
    found = []
    for parent, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in FOLDERS_LEFT_OUT]
        found += [Path(parent, name) for name in names if not name.startswith(".")]
    for path in sorted(found, key=lambda path: path.parts):
        if kind_of_name(path.name) and path.is_file():
            yield path
        else:
            left_out.add(path)


def _unreadable(error: OSError) -> None:
    raise DataError(
        f"to read the folder {printable(str(error.filename))}",
        came=f"“{error.strerror}”",
        remedy="check the path and its permissions",
    ) from error
