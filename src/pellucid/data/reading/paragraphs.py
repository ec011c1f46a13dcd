"""Paragraphs → lines: what .docx and .odt share.

A paragraph is a line; tabs and line breaks within it stay. A paragraph inside another (a text box, a footnote) is a
line after it.

In: what a document's tags mean.  Out: `Paragraphs`.  Used by: docx.py, odt.py.  Read next: docx.py.
"""

from __future__ import annotations


class Paragraphs:
    r"""Collects text into paragraphs; `take` gives the lines that are complete.

    Example:
        >>> paragraphs = Paragraphs()
        >>> paragraphs.begin(); paragraphs.add("a note"); paragraphs.begin(); paragraphs.add("inside"); paragraphs.end()
        >>> paragraphs.add(" follows"); paragraphs.end(); paragraphs.take()
        'a note follows\ninside\n'
    """

    def __init__(self) -> None:
        self._open: list[list[str]] = []
        self._inside: list[str] = []  # complete paragraphs that wait for the one around them
        self._lines: list[str] = []

    def begin(self) -> None:
        """Begin a paragraph."""
        self._open.append([])

    def end(self) -> None:
        """End the innermost paragraph."""
        if not self._open:
            return
        line = "".join(self._open.pop()) + "\n"
        if self._open:
            self._inside.append(line)
        else:
            self._lines += [line, *self._inside]
            self._inside.clear()

    def add(self, text: str) -> None:
        """Put text into the innermost paragraph; text outside of any is markup's and left out."""
        if self._open:
            self._open[-1].append(text)

    def ends_in_space(self) -> bool:
        """Whether the innermost paragraph is empty or its last character is a space."""
        return not self._open or not self._open[-1] or self._open[-1][-1].endswith((" ", "\n", "\t"))

    def take(self) -> str:
        """The lines that are complete since the last call."""
        lines = "".join(self._lines)
        self._lines.clear()
        return lines
