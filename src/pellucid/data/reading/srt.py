r"""Subtitles → what is said, a line for each line on the screen.

    17                                    left out: the number of a cue
    00:01:02,500 --> 00:01:04,000         left out: its times
    - <i>Who's there?</i>                 - Who's there?
    - {\an8}Nay, answer me.               - Nay, answer me.
                                          left out: the blank line that ends it

A line of digits that no time follows is something said.

In: a path.  Out: `Subtitles`.  Used by: kinds.py.  Read next: html.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.data.reading.lines import lines_of
from pellucid.data.reading.reader import FileReader

TIMES = re.compile(r"\s*-?(\d+:)?\d+:\d+[,.]\d+\s*-->\s*-?(\d+:)?\d+:\d+[,.]\d+")
MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>|\{\\[^{}]*\}")


class Subtitles(FileReader):
    """An .srt file, as the lines that are spoken."""

    def blocks(self) -> Iterator[str]:
        """The lines, without numbers, times and markup."""
        number: str | None = None  # a line of digits that waits for what follows it
        for lines in lines_of(self.decoded(), self.name):
            said = []
            for line in lines:
                if TIMES.match(line):
                    number = None
                    continue
                if number is not None:
                    said.append(number)
                    number = None
                if line.strip().isdecimal():
                    number = line.strip()
                elif spoken := MARKUP.sub("", line).strip():
                    said.append(spoken)
            if said:
                yield "\n".join(said) + "\n"
        if number is not None:
            yield number + "\n"
