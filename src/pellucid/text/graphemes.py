"""Graphemes: what a reader takes for one character, however many code points it is made of.

A letter with its marks, a syllable of Hangul, a flag, a family of emoji: text is cropped and counted in these, for a
cut inside one shows another character, or a mark on nothing.

In: text.  Out: graphemes, shorter text.  Used by: generate/stream.py, the command line.  Read next: cutting.py.
"""

from collections.abc import Iterator

import regex

LONGEST_HELD = 64
"""Code points that a stream waits for a grapheme to end: the longest emoji has 10; marks on a letter need not end."""

_GRAPHEME = regex.compile(r"\X")


def graphemes(text: str) -> Iterator[str]:
    """The graphemes of a text, one after the other; joined they are the text.

    Source: Unicode Standard Annex 29, extended grapheme clusters, as the `regex` library finds them.

    Example:
        >>> [len(one) for one in graphemes("a" + "नमस्ते")]
        [1, 1, 1, 4]
    """
    return (match[0] for match in _GRAPHEME.finditer(text))


def crop(text: str, most: int) -> str:
    """The first graphemes of a text, so many at most.

    Example:
        >>> crop("नमस्ते", 2)
        'नम'
    """
    end = 0
    for number, match in enumerate(_GRAPHEME.finditer(text)):
        if number == most:
            break
        end = match.end()
    return text[:end]


class GraphemeStream:
    """A text that comes in pieces, given in pieces that end where a grapheme ends.

    Whether a grapheme is whole shows only when the next begins, so the last one is held back until then.

    Example:
        >>> stream = GraphemeStream()
        >>> [stream.push(piece) for piece in ("म", "न", "े!")], stream.finish()
        (['', 'म', 'ने'], '!')
    """

    def __init__(self) -> None:
        self._held = ""

    def push(self, text: str) -> str:
        """What is surely whole now; often less than was pushed."""
        text = self._held + text
        start = 0
        for match in _GRAPHEME.finditer(text):
            start = match.start()
        if len(text) - start > LONGEST_HELD:
            start = len(text)
        self._held = text[start:]
        return text[:start]

    def finish(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return held
