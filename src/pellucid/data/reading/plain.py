"""Plain text, Markdown and code: every character is the text's.

In: a path.  Out: `PlainText`.  Used by: kinds.py.  Read next: lines.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from pellucid.data.reading.reader import FileReader


class PlainText(FileReader):
    """A file that is text from its first byte to its last, packed or not."""

    def blocks(self) -> Iterator[str]:
        """The text as it is."""
        return self.decoded()
