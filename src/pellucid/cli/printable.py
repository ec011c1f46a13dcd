"""Text from files, prompts and models, made safe to print: data is never a terminal's command.

A terminal obeys certain characters: escape sequences move the cursor, set the title, even type for you; bidirectional
overrides make a line read as another. They are shown instead. Newlines, tabs and every other character stay.

In: text.  Out: text.  Used by: every verb that prints text it was given.  Read next: main.py.
"""

import re

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 controls save tab and newline, delete, C1 controls, bidirectional marks, and halves of surrogate pairs."""


def printable(text: str) -> str:
    """The text with every character that a terminal would obey written out.

    Control characters become their pictures (U+2400 ...); what has no picture becomes ⟨U+ and its number⟩.

    Example:
        >>> printable("plain, \\x1b[31mred\\r, \\x9b and \\u202e")
        'plain, ␛[31mred␍, ⟨U+009B⟩ and ⟨U+202E⟩'
    """
    return OBEYED.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
