"""Blocks of text → lines, for the formats in which a line means something.

In: blocks.  Out: `lines_of`.  Used by: srt.py, csv.py, jsonl.py.  Read next: srt.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pellucid.errors import DataError

LONGEST_LINE = 16 << 20  # characters; a line is in memory at once


def lines_of(blocks: Iterable[str], name: str) -> Iterator[list[str]]:
    r"""Cut blocks of text into lines without their ends, those that come together at once.

    Args:
        blocks: The text.
        name: What messages call it.

    Yields:
        Lines; an empty one after the last line end is none.

    Raises:
        DataError: if a line has over 16 million characters.

    Example:
        >>> list(lines_of(["a\nb", "c\nd"], "x"))
        [['a'], ['bc'], ['d']]
    """
    rest: list[str] = []
    length = 0
    for block in blocks:
        *lines, last = block.split("\n")
        if lines:
            lines[0] = "".join([*rest, lines[0]])
            yield lines
            rest, length = [], 0
        rest.append(last)
        length += len(last)
        if length > LONGEST_LINE:
            raise DataError(
                f"lines of at most {LONGEST_LINE:,} characters in {name}",
                came="a longer one",
                remedy="break its lines, or rename it to .txt if it is plain text",
            )
    if length:
        yield ["".join(rest)]
