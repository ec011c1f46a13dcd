"""Text of others within lines of ours: cropped by what a reader sees, and kept together whichever way it is written.

A terminal that writes right-to-left text properly moves everything beside it too: the words before a Persian sentence
end up in its middle. So such a quote stands between two characters that isolate it. They are set where the line is
printed; until then two noncharacters hold their places, which `printable` lets no text of others contain.

In: text, lines.  Out: lines, rows of a terminal.  Used by: train_screen.py, train_closing.py.
Read next: train_closing.py.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby

from rich.cells import cell_len

from pellucid.cli.printable import PrintableStream, printable
from pellucid.text import graphemes

OPEN, CLOSE = "\ufdd0", "\ufdd1"
"""Where a quote begins and ends that has to be isolated: noncharacters, which Unicode keeps for such inner use."""

LEFT_TO_RIGHT, RIGHT_TO_LEFT, POP = "\u2066", "\u2067", "\u2069"
"""The isolates of Unicode's bidirectional algorithm."""

_QUOTE = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")


def one_line(text: str, most: int) -> str:
    """A text with its white space made into single spaces, printable, cut between graphemes to so many cells.

    Args:
        text: Any text.
        most: Cells of a terminal; most scripts take one a character, Chinese and emoji two.

    Example:
        >>> one_line("To be,\\n  or not to be", 9), one_line("中文字典", 5)
        ('To be, or …', '中文 …')
    """
    stream, line, used = PrintableStream(), "", 0
    for grapheme in graphemes(" ".join(text.split())):
        piece = stream.push(grapheme)
        used += cells(piece)
        if used > most:
            return _quoted(f"{line} …")
        line += piece
    return _quoted(line + stream.finish())


def shown(line: str, *, isolate: bool) -> str:
    """A line as it is printed: everything in it printable, quotes isolated, or just as they are.

    Args:
        line: With quotes of `one_line` in it, perhaps.
        isolate: Whether it goes to a terminal.

    Example:
        >>> ascii(shown("It writes: " + one_line("\\u0633\\u0644 12", 9), isolate=True))
        "'It writes: \\\\u2067\\\\u0633\\\\u0644 12\\\\u2069'"
    """
    return "".join(_isolated(part, direction if isolate else "") for part, direction in _parts(line))


def rows(text: str, width: int) -> list[str]:
    """Lines as rows of a terminal, none wider than it on any terminal, broken between words where that is possible.

    Args:
        text: Lines with quotes of `one_line` in them, perhaps.
        width: Cells of a row.

    Example:
        >>> rows("Step 10 of 20\\n  中文字典", 8)
        ['Step 10 ', 'of 20', '  中文字', '典']
    """
    return [row for line in text.replace("\t", " ").split("\n") for row in _broken(line, max(width, 2))]


def cells(text: str) -> int:
    """How many cells a text may take: terminals do not agree, so the most that one of them gives it.

    Some draw a family of emoji as one picture, some as three; some give a cell to a mark that stands beside its letter.

    Example:
        >>> cells("abc"), cells("中文"), cells("👩\u200d👧"), cells("e\\u0301")
        (3, 4, 4, 1)
    """
    return sum(max(cell_len(one), sum(map(_cells_alone, one))) for one in graphemes(text))


def _cells_alone(character: str) -> int:
    return 1 if unicodedata.category(character) == "Mc" else cell_len(character)


def _quoted(text: str) -> str:
    """Marked as a quote to be isolated, if anything in it is written from right to left."""
    turns = any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)
    return f"{OPEN}{text}{CLOSE}" if turns else text


def _parts(line: str) -> Iterator[tuple[str, str]]:
    """Printable parts of a line, each with the isolate it is to stand in; "" for our own words."""
    for number, part in enumerate(_QUOTE.split(line)):
        if part:
            yield printable(part), _direction(part) if number % 2 else ""


def _direction(text: str) -> str:
    """Which way a text begins to be written: as its first letter is."""
    for character in text:
        match unicodedata.bidirectional(character):
            case "L":
                return LEFT_TO_RIGHT
            case "R" | "AL":
                return RIGHT_TO_LEFT
    return LEFT_TO_RIGHT


def _isolated(text: str, direction: str) -> str:
    return f"{direction}{text}{POP}" if direction else text


def _broken(line: str, width: int) -> Iterator[str]:
    row: list[tuple[str, str]] = []
    used = 0
    for grapheme, direction in ((one, direction) for part, direction in _parts(line) for one in graphemes(part)):
        if used + cells(grapheme) > width and grapheme == " ":
            yield _row(row)
            row, used = [], 0
            continue
        if used + cells(grapheme) > width:
            cut = next((place for place in range(len(row), 0, -1) if row[place - 1][0] == " "), 0)
            if not "".join(one for one, _ in row[:cut]).strip():
                cut = len(row)
            yield _row(row[:cut])
            row = row[cut:]
            used = sum(cells(one) for one, _ in row)
        row.append((grapheme, direction))
        used += cells(grapheme)
    yield _row(row)


def _row(row: list[tuple[str, str]]) -> str:
    runs = groupby(row, key=lambda pair: pair[1])
    return "".join(_isolated("".join(one for one, _ in run), direction) for direction, run in runs)
