"""Which column of a table is text, if nobody says: the only one that can be, or a sentence that lists them.

In: the first rows of a table.  Out: `choose_column`, `UnclearColumn`.  Used by: csv.py, jsonl.py.  Read next: csv.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pellucid.data.pieces import printable
from pellucid.errors import DataError

JUDGED_ROWS = 200
JUDGED_CHARACTERS = 1 << 20
USUAL_NAMES = ("text", "content", "body")  # what nearly every published table calls it, the likeliest first
SHORTEST_MEAN = 20  # characters: names and dates are shorter, sentences in every script that spaces words longer
SHORTEST_MEAN_DENSE = 10  # the same in Chinese, Japanese or Korean
LETTER_SHARE = 0.5  # addresses, hashes and numbers have fewer
DISTINCT_SHARE = 0.5  # labels repeat, texts hardly do
LISTED = 20


class UnclearColumn(DataError):
    """A table of which nobody can say which column is text."""


def choose_column(columns: Mapping[str, Sequence[str]], asked: str | None, name: str) -> str:
    """Choose the column of text.

    Args:
        columns: The values of the first rows, by column; empty ones may be missing.
        asked: The name the user gave, if any.
        name: What messages call the table.

    Returns:
        The column's name.

    Raises:
        UnclearColumn: if there is none of the name that was asked for, or not exactly one that is likely.

    Example:
        >>> choose_column({"id": ["1", "2"], "review": ["I liked it from start to end.", "Not for me."]}, None, "x")
        'review'
    """
    listed = ", ".join(f"“{printable(column)}”" for column in list(columns)[:LISTED])
    listed = (listed + f" and {len(columns) - LISTED} more" if len(columns) > LISTED else listed) or "none with text"
    if asked is not None:
        if asked in columns:
            return asked
        raise UnclearColumn(
            f"the column “{printable(asked)}” in {name}", came=f"the columns {listed}", remedy="name one of these"
        )
    if len(columns) == 1:
        return next(iter(columns))
    likely = [column for column, values in columns.items() if _is_text(values)]
    by_name = [column for usual in USUAL_NAMES for column in columns if column.lower() == usual]
    if by_name and (by_name[0] in likely or not likely):
        return by_name[0]
    if len(likely) == 1:
        return likely[0]
    raise UnclearColumn(
        f"one column of text in {name}",
        came=f"{len(likely) or 'none'} that may be it, of {listed}",
        remedy=f"say which: --text-column {_example(likely or list(columns))}",
    )


def _is_text(values: Sequence[str]) -> bool:
    """Whether the values read like sentences."""
    filled = [value for value in values if value.strip()]
    joined = "".join(filled)
    if not filled:
        return False
    dense = sum(c > "\u2e7f" for c in joined) > len(joined) / 2
    return (
        len(joined) / len(filled) >= (SHORTEST_MEAN_DENSE if dense else SHORTEST_MEAN)
        and sum(c.isalpha() for c in joined) >= LETTER_SHARE * len(joined)
        and len(set(filled)) >= DISTINCT_SHARE * len(filled)
    )


def _example(columns: Sequence[str]) -> str:
    name = printable(columns[0]) if columns else "NAME"
    return f"“{name}”" if " " in name else name
