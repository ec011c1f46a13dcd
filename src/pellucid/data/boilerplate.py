"""What stands in a file and is no part of its text: a licence around a book, page numbers, running heads.

It is found and told, and left out only when asked. A licence is known by the markers its publisher writes. A page
number is a line of its own, and a running head a line with a page number in it or right beside one; that they count
up, and that some of them interrupt a sentence, tells them from verse numbers, chapters and the names in a play.

In: pieces of a document.  Out: `BoilerplateFinder`, `Boilerplate`, `WithoutBoilerplate`.  Used by: survey.py,
sources.py.  Read next: survey.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from pellucid.data.pieces import cut_pieces, printable
from pellucid.data.reading import FileReader

START = re.compile(
    r"^[ \t]*\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG[^\n]*\n|^\*END[ \*]*THE SMALL PRINT[^\n]*\n", re.M
)
END = re.compile(r"^[ \t]*\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG|^End of (?:the )?Project Gutenberg", re.M)
HEADER_WITHIN = 1 << 16  # characters: the header of a book is 1,000 to 15,000

LONGEST_HEAD_BYTES = 120
PAGE_NUMBER = re.compile(
    r"[ \t]*(?:\[|\(|-+ ?|– ?|— ?|\{|\* ?)?(?:[Pp]g?\.? ?|[Pp]age |[Ss]eite |S\. ?)?(\d{1,4})"
    r"(?: ?(?:of|/|von|sur|de) ?\d{1,4})?(?:\]|\)| ?-+| ?–| ?—|\}| ?\*)?[ \t]*\r?"
)
HEAD_WITH_NUMBER = re.compile(r"[ \t]*(?:(\d{1,4})[ \t]+(\D*[^\W\d]\D*)|(\D*[^\W\d]\D*?)[ \t]+(\d{1,4}))[ \t]*\r?")
LINES = re.compile(r"[^\n]*\n|[^\n]+")
FEWEST_PAGES = 5
COUNTING_SHARE = 0.6  # of the numbers follow the one before within a few
LARGEST_STEP = 4  # pages with a picture have no number
INTERRUPTING_SHARE = 0.2  # of pages end within a sentence; verses and chapters end with one
HEAD_SHARE = 0.3  # of pages have it: left and right pages may have different ones
FURNITURE_SHARE = 0.25  # of the lines at most; a table of numbers has more
FULL_PIECES = 16  # a million characters, a long book, are looked at whole,
SAMPLED_EVERY = 16  # and of what follows every 16th piece: a tenth of the time of the whole reading
MOST_HEADS = 4096  # different ones that are remembered
SENTENCE_ENDS = frozenset(".!?:;…。！？”’»\"')]}*_-–—؟۔।॥")


@dataclass(frozen=True)
class Boilerplate:
    """What one document has of it.

    Attributes:
        licence: Characters of a licence before and after the text.
        text_start: Where the text begins, in characters.
        text_end: Where it ends; None is the end of the document.
        page_numbers: How many lines are page numbers, at least; 0 if they do not look like it.
        heads: Running heads on lines of their own, with how often they were seen at least.
        numbered_heads: Running heads with a page number beside them, without it.
        example: A page number as it stands there.
    """

    licence: int = 0
    text_start: int = 0
    text_end: int | None = None
    page_numbers: int = 0
    heads: dict[str, int] = field(default_factory=dict)
    numbered_heads: dict[str, int] = field(default_factory=dict)
    example: str = ""

    def __bool__(self) -> bool:
        return bool(self.licence or self.page_numbers or self.heads or self.numbered_heads)


class _Series:
    """Numbers at the same place of each page: do they count up, and do they interrupt sentences?"""

    def __init__(self) -> None:
        self.seen = self._following = self._interrupting = 0
        self._last = -1

    def add(self, number: int, before: str) -> None:
        self.seen += 1
        self._following += 0 < number - self._last <= LARGEST_STEP
        self._interrupting += bool(before) and before not in SENTENCE_ENDS
        self._last = number

    @property
    def is_pages(self) -> bool:
        return (
            self.seen >= FEWEST_PAGES
            and self._following >= COUNTING_SHARE * (self.seen - 1)
            and self._interrupting >= INTERRUPTING_SHARE * self.seen
        )


class BoilerplateFinder:
    """Watches the pieces of one document go by."""

    def __init__(self) -> None:
        self._pieces = self._characters = 0
        self._start = 0
        self._end: int | None = None
        self._numbers = _Series()
        self._with_number: dict[str, _Series] = {}
        self._beside: Counter[str] = Counter()
        self._example = ""

    def look(self, piece: str, encoded: bytes) -> None:
        """Look at the next piece.

        Args:
            piece: The text.
            encoded: The same in UTF-8.
        """
        if self._start or self._characters < HEADER_WITHIN:  # an end without a start is not looked for: it takes time
            self._look_for_licence(piece)
        if self._pieces < FULL_PIECES or self._pieces % SAMPLED_EVERY == 0:
            self._look_at_lines(encoded)
        self._pieces += 1
        self._characters += len(piece)

    def found(self) -> Boilerplate:
        """What the document has, when all of it was seen."""
        numbers = self._numbers
        fewest = max(FEWEST_PAGES, HEAD_SHARE * numbers.seen)
        beside = {head: count for head, count in self._beside.items() if count >= fewest}
        after = 0 if self._end is None else self._characters - self._end
        return Boilerplate(
            licence=self._start + after,
            text_start=self._start,
            text_end=self._end,
            page_numbers=numbers.seen if numbers.is_pages else 0,
            heads=beside if numbers.is_pages else {},
            numbered_heads={head: one.seen for head, one in self._with_number.items() if one.is_pages},
            example=self._example,
        )

    def _look_for_licence(self, piece: str) -> None:
        if self._characters < HEADER_WITHIN and not self._start and (start := START.search(piece)):
            self._start = self._characters + start.end()
        if (
            self._start
            and self._end is None
            and ("GUTENBERG" in piece or "Gutenberg" in piece)
            and (end := END.search(piece))
        ):
            self._end = self._characters + end.start()

    def _look_at_lines(self, encoded: bytes) -> None:
        """Pick out the lines that begin or end with a digit, all lines at once, and look at these few."""
        data = np.frombuffer(encoded, dtype=np.uint8)
        ends = np.flatnonzero(data == 10)
        if len(ends) < FEWEST_PAGES:
            return
        starts = np.empty_like(ends)
        starts[0], starts[1:] = 0, ends[:-1] + 1
        lengths = ends - starts
        digit_first = data[starts] - np.uint8(48) < 10
        last = data[ends - 1]
        digit_last = last - np.uint8(48) < 10
        other = OTHER_LAST[last] & (lengths <= 16)  # a bracket, a dash, or perhaps a digit of Arabic or Persian
        (chosen,) = np.nonzero((digit_first | digit_last | other) & (lengths > 0) & (lengths <= LONGEST_HEAD_BYTES))
        if len(chosen) > FURNITURE_SHARE * len(ends):
            return
        for number in chosen.tolist():
            self._look_at_line(encoded, int(starts[number]), int(ends[number]))

    def _look_at_line(self, encoded: bytes, start: int, end: int) -> None:
        line = encoded[start:end].decode("utf-8")
        if page := PAGE_NUMBER.fullmatch(line):
            before = encoded[max(0, start - 400) : start].decode("utf-8", "ignore").rstrip()
            self._numbers.add(int(page[1]), before[-1:])
            self._example = self._example or printable(line.strip())
            after = encoded[end : end + 400].decode("utf-8", "ignore").lstrip("\n")
            for beside in {before.rpartition("\n")[2].strip(), after.partition("\n")[0].strip()}:
                if 0 < len(beside) <= LONGEST_HEAD_BYTES // 2:
                    self._remember(beside)
        elif head := HEAD_WITH_NUMBER.fullmatch(line):
            words = " ".join((head[2] or head[3]).split())
            if words in self._with_number or len(self._with_number) < MOST_HEADS:
                before = encoded[max(0, start - 400) : start].decode("utf-8", "ignore").rstrip()
                self._with_number.setdefault(words, _Series()).add(int(head[1] or head[4]), before[-1:])

    def _remember(self, line: str) -> None:
        if line in self._beside or len(self._beside) < MOST_HEADS:
            self._beside[line] += 1


OTHER_LAST = np.isin(np.arange(256), list(")]}-*–—٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹".encode()))


class WithoutBoilerplate:
    """A document without what was found in it.

    Args:
        reader: The document.
        found: What is to be left out.

    Attributes:
        name: The reader's.
        changes: The reader's, and how much was left out.
    """

    rows = False

    def __init__(self, reader: FileReader, found: Boilerplate) -> None:
        self._reader, self._found = reader, found
        self.name, self.told_kind = reader.name, reader.told_kind

    @property
    def changes(self) -> Counter[str]:
        """What the reader changed, and how much was left out here."""
        return self._reader.changes

    def documents(self) -> Iterator[Iterable[str]]:
        """The one document."""
        for blocks in self._reader.documents():
            yield self._blocks(blocks)

    def _blocks(self, blocks: Iterable[str]) -> Iterator[str]:
        place, found = 0, self._found
        end = float("inf") if found.text_end is None else found.text_end
        for piece in cut_pieces(blocks):
            inside = piece[max(0, found.text_start - place) : max(0, int(min(len(piece), end - place)))]
            place += len(piece)
            if inside and (found.page_numbers or found.numbered_heads):
                inside = self._without_lines(inside)
            if inside:
                yield inside

    def _without_lines(self, piece: str) -> str:
        """Drop page numbers and heads, and with each the blank line that follows, if one stands before it too."""
        kept: list[str] = []
        dropped = False
        for line in LINES.findall(piece):
            if self._is_furniture(line.rstrip("\n")):
                dropped = True
                self.changes["Left out {n} page number{s} and running heads."] += 1
            elif not (dropped and not line.strip() and kept and not kept[-1].strip()):
                kept.append(line)
                dropped = False
        return "".join(kept)

    def _is_furniture(self, line: str) -> bool:
        found = self._found
        if not line or len(line) > LONGEST_HEAD_BYTES:
            return False
        if found.page_numbers and PAGE_NUMBER.fullmatch(line):
            return True
        if found.numbered_heads and (head := HEAD_WITH_NUMBER.fullmatch(line)):
            return " ".join((head[2] or head[3]).split()) in found.numbered_heads
        return line.strip() in found.heads
