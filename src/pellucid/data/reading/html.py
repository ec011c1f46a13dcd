"""Web pages → their text: a line for each paragraph, heading, list item or row of a table.

White space is as a browser shows it: any run of it is one space, none at the ends of a line, except in <pre>; cells of
a row stand behind tabs. Entities are decoded. Left out are scripts, styles, titles, templates, comments, and the small
readings beside East Asian characters (<rt>), which would part the words.

In: a path, or bytes.  Out: `WebPage`, `page_text`.  Used by: kinds.py, epub.py.  Read next: archive.py.
Source: HTML Living Standard, 13.2.3 (which encoding a page has: a mark, what the user says, what it declares).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser

from pellucid.data.reading.decoding import decoded, plainly_utf_8
from pellucid.data.reading.encodings import marked_encoding, text_codec
from pellucid.data.reading.packed import byte_blocks, first_bytes
from pellucid.data.reading.reader import FileReader
from pellucid.errors import DataError

BLOCK_TAGS = """address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav ol option p pre section
    select summary table tbody tfoot thead tr ul"""
BLOCKS = frozenset(BLOCK_TAGS.split())
LEFT_OUT = frozenset(("script", "style", "title", "template", "rt", "rp"))
READINGS = frozenset(("rt", "rp"))  # these may stay open until the next of them, or the end of <ruby>
CELLS = frozenset(("td", "th"))
WHITE_SPACE = re.compile(r"[ \t\n\f\r]+")  # a no-break space is none
SPACES = re.compile(r" {2,}")
DECLARED = re.compile(
    rb"""(?i)<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
DECLARED_WITHIN_BYTES = 1 << 12  # the standard asks for 1024; editors put comments before it
LARGEST_TAG = 64 << 20  # characters between < and >: pictures can be written into a page
LONG_LINE = 1 << 20
SMALL_REST = 1 << 12
AS_BROWSERS_TAKE = {
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1", "ascii", "us-ascii"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    "iso-8859-9": "cp1254",
}
UTF_8_NAMES = frozenset(("utf-8", "utf8"))


class WebPage(FileReader):
    """An .html file."""

    def blocks(self) -> Iterator[str]:
        """The page's text."""
        head = first_bytes(self.path)
        encoding = self.options.encoding or page_encoding(head, lambda: byte_blocks(self.path), self.changes)
        return page_text(decoded(byte_blocks(self.path), self.name, encoding, self.changes), self.name, self.changes)


def page_encoding(head: bytes, blocks: Callable[[], Iterable[bytes]], changes: Counter[str]) -> str | None:
    """Find the encoding of a page that names one.

    A page that is UTF-8 from start to end is read so, whatever it declares; otherwise its declaration is believed, and
    told. Bytes that do not fit it are refused later, as in any file.

    Args:
        head: Its first bytes.
        blocks: Reads it.
        changes: Where it is told.

    Returns:
        The encoding's name, or None for UTF-8.
    """
    if mark := marked_encoding(head):
        changes[f"Read {{n}} web page{{s}} as {mark}, as marked."] += 1
        return mark
    found = DECLARED.search(head[:DECLARED_WITHIN_BYTES])
    declared = (found[1] or found[2]).decode("ascii").lower() if found else ""
    if not declared or declared in UTF_8_NAMES or plainly_utf_8(blocks()):
        return None
    declared = AS_BROWSERS_TAKE.get(declared, declared)
    try:
        text_codec(declared)
    except DataError:
        return None  # no such encoding: read as any file
    changes[f"Read {{n}} web page{{s}} as {declared}, as declared."] += 1
    return declared


def page_text(text: Iterable[str], name: str, changes: Counter[str]) -> Iterator[str]:
    """Take the text out of HTML.

    Args:
        text: The page.
        name: What messages call it.
        changes: What was left out because the page is broken is counted here.

    Yields:
        Blocks of lines.

    Raises:
        DataError: if a tag never ends.

    Example:
        >>> "".join(page_text(["<p>Salt &amp; <i>pepper</i><p>to taste"], "x.html", Counter()))
        'Salt & pepper\\nto taste\\n'
    """
    parser = _Page()
    for block in text:
        parser.feed(block)
        if len(parser.rawdata) > LARGEST_TAG:
            raise DataError(
                f"markup that ends in {name}",
                came=f"a tag, comment or script of over {LARGEST_TAG >> 20} million characters",
                remedy="open it in a browser and save it as text",
            )
        yield parser.take()
    # By the standard all that follows "<" without an end is no text, nor is a script or a title that never ends. Small
    # rests Python's parser may judge; at large ones it would look again and again, in time that grows as the square.
    if len(parser.rawdata) <= SMALL_REST and parser.skipped is None:
        parser.close()
    elif left_out := len(parser.rawdata) + parser.skipped_characters:
        changes["Left out {n} character{s} of markup that has no end."] += left_out
    parser.end_line()
    yield parser.take()


class _Page(HTMLParser):
    """Collects lines."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.skipped: str | None = None
        self.skipped_characters = 0
        self._preformatted = 0
        self._just_preformatted = False  # a line end right after <pre> is none
        self._line: list[str] = []
        self._continues = False  # a line whose beginning was handed on already
        self._lines: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if self.skipped in READINGS and (tag in BLOCKS or tag in READINGS or tag == "rb"):
            self.skipped = None
        if self.skipped is not None and tag != "body":
            return
        self.skipped, self.skipped_characters = tag if tag in LEFT_OUT else None, 0
        if tag in BLOCKS:
            self.end_line()
        if tag == "pre":
            self._preformatted += 1
            self._just_preformatted = True
        elif tag == "br":
            self.end_line(even_if_empty=bool(self._preformatted))
        elif tag in CELLS and self._line:
            self._line.append("\t")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        if tag not in LEFT_OUT and tag != "pre":  # <script/> in XHTML holds nothing
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self.skipped is not None:
            if tag == self.skipped or (tag == "ruby" and self.skipped in READINGS):
                self.skipped = None
            return
        if tag in BLOCKS:
            self.end_line()
        if tag == "pre" and self._preformatted:
            self._preformatted -= 1

    def handle_data(self, data: str) -> None:
        if self.skipped is not None:
            self.skipped_characters += len(data)
            return
        if not self._preformatted:
            self._line.append(WHITE_SPACE.sub(" ", data))
            return
        if self._just_preformatted:
            data, self._just_preformatted = data.removeprefix("\n"), False
        first, *others = data.split("\n")
        self._line.append(first)
        for line in others:
            self.end_line(even_if_empty=True)
            self._line.append(line)

    def parse_html_declaration(self, i: int) -> int:
        """Read what begins with <!; Python's parser fails on a marked section that HTML does not have."""
        if not self.rawdata.startswith("<![", i):
            return super().parse_html_declaration(i)
        if not self.rawdata.startswith("<![CDATA[", i):
            return self.parse_bogus_comment(i)
        end = self.rawdata.find("]]>", i)
        if end < 0:
            return -1
        self.handle_data(self.rawdata[i + len("<![CDATA[") : end])
        return end + len("]]>")

    def end_line(self, *, even_if_empty: bool = False) -> None:
        """Put what has come together on a line of its own."""
        line = "".join(self._line)
        self._line.clear()
        if self._continues:
            line = SPACES.sub(" ", line).rstrip(" ")
        elif not self._preformatted:
            line = "\t".join(SPACES.sub(" ", cell).strip(" ") for cell in line.split("\t"))
        if line.strip() or even_if_empty or self._continues:
            self._lines.append(line + "\n")
        self._continues = False

    def take(self) -> str:
        """The lines that are complete since the last call, and of a very long one a part."""
        if not self._preformatted and sum(map(len, self._line)) > LONG_LINE:
            line = SPACES.sub(" ", "".join(self._line))
            line = line if self._continues else line.lstrip(" ")
            end = max(line.rfind(" "), 0)  # the space begins the next part, for it may turn out to be the last
            self._lines.append(line[:end])
            self._line, self._continues = [line[end:]], self._continues or end > 0
        lines = "".join(self._lines)
        self._lines.clear()
        return lines
