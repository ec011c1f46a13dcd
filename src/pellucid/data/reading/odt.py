"""OpenDocument texts: a line for each paragraph and heading, with its tabs and line breaks; a footnote follows it.

White space is as the standard has it: any run of it in the file is one space, none at the start of a paragraph, and
more are written as `text:s`. Left out are comments and what tracked changes have deleted.

In: a path.  Out: `OpenDocument`.  Used by: kinds.py.  Read next: epub.py.
Source: OASIS OpenDocument 1.3 part 3, 6.1 (text content), 6.1.2 (white space).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.data.reading.archive import Archive
from pellucid.data.reading.paragraphs import Paragraphs
from pellucid.data.reading.reader import FileReader
from pellucid.data.reading.xml_stream import read_xml

CONTENT = "content.xml"
TEXT_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
LEFT_OUT = frozenset(("tracked-changes", "annotation", "note-citation", "ruby-text", "script"))
LEFT_OUT_OF_DRAWINGS = frozenset(("desc", "title"))
WHITE_SPACE = re.compile(r"[ \t\r\n]+")
MOST_SPACES = 1000  # in one text:s; more is no text, and might be a billion


class OpenDocument(FileReader):
    """An .odt file."""

    def blocks(self) -> Iterator[str]:
        """The paragraphs as lines."""
        with Archive(self.path) as archive:
            body = _Body()
            for _ in read_xml(archive.blocks(CONTENT), body, self.name):
                yield body.paragraphs.take()


class _Body:
    """Tells paragraphs what the tags of content.xml say."""

    def __init__(self) -> None:
        self.paragraphs = Paragraphs()
        self._left_out = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, local = tag.rpartition(" ")
        if self._left_out or local in LEFT_OUT or (local in LEFT_OUT_OF_DRAWINGS and "svg" in namespace):
            self._left_out += 1
        elif namespace == TEXT_NAMESPACE:
            match local:
                case "p" | "h":
                    self.paragraphs.begin()
                case "tab":
                    self.paragraphs.add("\t")
                case "line-break":
                    self.paragraphs.add("\n")
                case "s":
                    count = attributes.get(f"{TEXT_NAMESPACE} c", "1")[:9]
                    self.paragraphs.add(" " * min(int(count) if count.isdecimal() else 1, MOST_SPACES))

    def end(self, tag: str) -> None:
        namespace, _, local = tag.rpartition(" ")
        if self._left_out:
            self._left_out -= 1
        elif namespace == TEXT_NAMESPACE and local in ("p", "h"):
            self.paragraphs.end()

    def text(self, text: str) -> None:
        if not self._left_out:
            text = WHITE_SPACE.sub(" ", text)
            self.paragraphs.add(text.removeprefix(" ") if self.paragraphs.ends_in_space() else text)
