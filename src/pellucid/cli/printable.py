"""Text from files, prompts and models, made safe to print: data is never a terminal's command.

A terminal obeys certain characters: escape sequences move the cursor, set the title, even type for you; bidirectional
overrides make a line read as another. They are shown instead. So are characters that nobody sees where they are no part
of writing: joiners, variation selectors and tags that follow no letter or emoji may hide a text in a text. Where they
are part of it (Persian, Indic scripts, families and flags) they stay, as do newlines, tabs and every other character.

In: text.  Out: text.  Used by: every verb that prints text it was given.  Read next: quoting.py.
"""

import json
import re
import unicodedata
from typing import Any

_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"  # a black flag, a region, the end
_OBEYED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 save tab and newline, delete, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
    "\u2028\u2029"  # line and paragraph ends that only some terminals obey
    "\u206a-\u206f\ufff9-\ufffb"  # old switches of shapes and digits; annotations
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # halves of surrogate pairs; what is no character, and marks quotes here
)
_JOINERS = "\u200c\u200d"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"

_FOUND = re.compile(f"{_FLAG}|[{_OBEYED}{_JOINERS}{_SELECTORS}{_TAGS}]")
_ESCAPED = re.compile(f"[{_OBEYED}]")
_IS_SELECTOR = re.compile(f"[{_SELECTORS}]")


def printable(text: str) -> str:
    """The text with every character that a terminal would obey, or that nobody would see, written out.

    Control characters become their pictures (U+2400 ...); what has no picture becomes ⟨U+ and its number⟩.

    Example:
        >>> printable("plain, \\x1b[31mred\\r, \\x9b and \\u202e")
        'plain, ␛[31mred␍, ⟨U+009B⟩ and ⟨U+202E⟩'
    """
    return _between(text, 0, len(text))


def printable_json(value: Any) -> str:
    """JSON on one line, readable in any script, with what a terminal would obey as escapes; it reads the same.

    Example:
        >>> print(printable_json({"text": "中\\x9b"}))
        {"text": "中\\u009b"}
    """
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


class PrintableStream:
    """The same for a text that comes in pieces which end where a grapheme ends.

    Example:
        >>> stream = PrintableStream()
        >>> [stream.push(piece) for piece in ("a\\u200c", " b\\x07")], stream.finish()
        (['a', '⟨U+200C⟩ b␇'], '')
    """

    def __init__(self) -> None:
        self._text = ""  # the last characters, which the next are judged by
        self._told = 0  # how many of them have been given

    def push(self, text: str) -> str:
        """The text so far, save a joiner at its end: what it joins is not there yet."""
        self._text += text
        return self._tell(len(self._text.rstrip(_JOINERS)))

    def finish(self) -> str:
        """What was held back."""
        return self._tell(len(self._text))

    def _tell(self, end: int) -> str:
        shown = _between(self._text, self._told, max(end, self._told))
        kept = max(0, min(self._told, end) - 2)  # a joiner is judged by a selector, and that by what it selects
        self._text, self._told = self._text[kept:], max(end, self._told) - kept
        return shown


def _between(text: str, start: int, end: int) -> str:
    parts = []
    for match in _FOUND.finditer(text, start):
        if match.start() >= end:
            break
        parts += [text[start : match.start()], match[0] if _stays(text, match) else _picture(match[0])]
        start = match.end()
    return "".join([*parts, text[start:end]])


def _stays(text: str, match: re.Match[str]) -> bool:
    """Whether a character that is not seen is part of writing: a flag, a joiner or a selector in its place."""
    place = match.start()
    if len(match[0]) > 1:
        return True
    if match[0] in _JOINERS:
        return _is_written(text, place - 1) and (_is_written(text, place + 1) or _ends_a_word(text[place - 1]))
    return bool(_IS_SELECTOR.match(match[0])) and _selects(text, place)


def _is_written(text: str, place: int) -> bool:
    """Whether a letter, a mark on one, an emoji or another sign is there."""
    if not 0 <= place < len(text):
        return False
    if _IS_SELECTOR.match(text[place]):
        return _selects(text, place)
    return unicodedata.category(text[place])[0] in "LMS"


def _selects(text: str, place: int) -> bool:
    """Whether a variation selector follows something of which there are variants; one does, not a row of them."""
    return place > 0 and unicodedata.category(text[place - 1])[0] in "LNSP"


def _ends_a_word(before: str) -> bool:
    """Whether a joiner may stand last: it asks for a form of an Arabic letter, or of an Indic one without its vowel."""
    is_mark = unicodedata.category(before) in ("Mn", "Mc") and not _IS_SELECTOR.match(before)
    return is_mark or unicodedata.bidirectional(before) == "AL"


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
