"""Word documents: a line for each paragraph, with its tabs and line breaks, then the footnotes and endnotes.

Left out are headers and footers of pages, comments, what tracked changes have deleted or moved away, field codes, and
the second copy of a text box that Word keeps for older programs.

In: a path.  Out: `WordDocument`.  Used by: kinds.py.  Read next: odt.py.
Source: ECMA-376 part 1, 17.3 (paragraphs and runs), 11.3 (parts of a package).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from pellucid.data.reading.archive import Archive
from pellucid.data.reading.paragraphs import Paragraphs
from pellucid.data.reading.reader import FileReader
from pellucid.data.reading.xml_stream import read_xml

RELATIONS = "_rels/.rels"
MAIN_PART = "word/document.xml"
WORD_NAMESPACE = "/wordprocessingml/"  # what the name has in both forms of the standard
MATH_NAMESPACE = "/math"
LEFT_OUT = frozenset(("del", "moveFrom", "Fallback"))
LINE = "textWrapping"  # the kind of break that is a line's; the others are a page's or column's
CHARACTERS = {"tab": "\t", "ptab": "\t", "cr": "\n", "noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}


class WordDocument(FileReader):
    """A .docx file."""

    def blocks(self) -> Iterator[str]:
        """The paragraphs as lines."""
        with Archive(self.path) as archive:
            main = _main_part(archive)
            notes = (posixpath.join(posixpath.dirname(main), f"{kind}.xml") for kind in ("footnotes", "endnotes"))
            for part in (main, *(part for part in notes if part in archive.names)):
                body = _Body()
                for _ in read_xml(archive.blocks(part), body, self.name):
                    yield body.paragraphs.take()


class _Body:
    """Tells paragraphs what the tags of a part say."""

    def __init__(self) -> None:
        self.paragraphs = Paragraphs()
        self._left_out = 0  # how deep in something left out
        self._runs: list[int] = []  # for each open paragraph; a tab outside a run is a tab stop's definition
        self._texts = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, local = tag.rpartition(" ")
        if self._left_out or local in LEFT_OUT:
            self._left_out += 1
        elif namespace.endswith(MATH_NAMESPACE):
            self._texts += local == "t"
        elif WORD_NAMESPACE not in namespace:
            return
        elif local == "p":
            self.paragraphs.begin()
            self._runs.append(0)
        elif not self._runs:
            return
        elif local == "r":
            self._runs[-1] += 1
        elif local == "t":
            self._texts += 1
        elif self._runs[-1] and local in CHARACTERS:
            self.paragraphs.add(CHARACTERS[local])
        elif self._runs[-1] and local == "br" and attributes.get(f"{namespace} type", LINE) == LINE:
            self.paragraphs.add("\n")

    def end(self, tag: str) -> None:
        namespace, _, local = tag.rpartition(" ")
        if self._left_out:
            self._left_out -= 1
        elif namespace.endswith(MATH_NAMESPACE):
            self._texts -= local == "t"
        elif WORD_NAMESPACE in namespace:
            if local == "p":
                self.paragraphs.end()
                self._runs.pop()
            elif self._runs:
                self._runs[-1] -= local == "r"
                self._texts -= local == "t"

    def text(self, text: str) -> None:
        if self._texts and not self._left_out:
            self.paragraphs.add(text)


class _Relations:
    """Finds the main part in a package's list of relations."""

    def __init__(self) -> None:
        self.main = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if attributes.get("Type", "").endswith("/officeDocument"):
            self.main = attributes.get("Target", "").lstrip("/")

    def end(self, tag: str) -> None: ...

    def text(self, text: str) -> None: ...


def _main_part(archive: Archive) -> str:
    relations = _Relations()
    if RELATIONS in archive.names:
        for _ in read_xml([archive.small(RELATIONS)], relations, archive.name):
            pass
    return relations.main or MAIN_PART
