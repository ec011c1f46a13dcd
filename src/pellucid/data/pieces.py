"""A text that comes in blocks of any size → pieces of at most 65,536 characters, cut where no word is parted.

So a gigabyte never sits in memory, and neither tokens nor passages depend on how a file happened to be read.

In: blocks of text.  Out: `cut_pieces`, `printable`.  Used by: the readers, sources.py.  Read next: reading/packed.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

PIECE_CHARACTERS = 1 << 16  # small enough to encode many side by side, large enough that cuts are rare


def printable(text: str) -> str:
    r"""Return text in which every control, format and undecodable character is spelled out, safe for a terminal.

    Args:
        text: Anything: a file name, a stretch of somebody's file.

    Returns:
        The same text with unprintable characters as escapes.

    Example:
        >>> printable("caf\u00e9\x1b[31m")
        'café\\x1b[31m'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def cut_pieces(blocks: Iterable[str]) -> Iterator[str]:
    r"""Cut a text that comes in blocks of any size into pieces that do not depend on the blocks.

    A cut is placed between two lines that touch with black characters, where GPT-2's and every similar rule of
    cutting text into words has a boundary too, so that tokens do not depend on the pieces either.

    Args:
        blocks: The text.

    Yields:
        Pieces of 1 to 65,536 characters that join to the text.

    Example:
        >>> [len(piece) for piece in cut_pieces(["two words\n" * 5000, "two words\n" * 5000])]
        [65530, 34470]
    """
    rest = ""
    for block in blocks:
        rest += block
        start = 0
        while len(rest) - start > PIECE_CHARACTERS:
            end = _cut_place(rest, start, start + PIECE_CHARACTERS)
            yield rest[start:end]
            start = end
        rest = rest[start:]
    if rest:
        yield rest


def _cut_place(text: str, start: int, limit: int) -> int:
    """Where to cut text[start:limit]: between two lines if possible, else after a space, else at the limit."""
    lowest = start + PIECE_CHARACTERS // 2
    last_newline = at = text.rfind("\n", lowest, limit)
    while at > lowest:
        if not text[at - 1].isspace() and not text[at + 1 : at + 2].isspace():
            return at + 1
        at = text.rfind("\n", lowest, at)
    if last_newline >= 0:
        return last_newline + 1
    space = text.rfind(" ", lowest, limit)
    return space if space > start else limit  # before the space: the words of GPT-2's rule begin with it
