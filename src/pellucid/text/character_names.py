"""What a sentence calls characters, those that cannot be seen among them.

In: characters.  Out: words about them that any terminal can show.  Used by: tokenizer.py.  Read next: tokenizer.py.
"""

import unicodedata

MOST_NAMED = 40
"""How many a sentence spells out: a page of another script would bury it."""

_CONTROLS = {"\n": "line end", "\t": "tab", "\r": "carriage return"}  # Unicode gives controls no names


def named(characters: str) -> str:
    """Characters by name, with their code points; of many the first, and how many more.

    Example:
        >>> named("ж\\n")
        "'ж' (U+0436), line end (U+000A)"
    """
    names = ", ".join(f"{_name(character)} (U+{ord(character):04X})" for character in characters[:MOST_NAMED])
    return names + (f" and {len(characters) - MOST_NAMED} more" if len(characters) > MOST_NAMED else "")


def _name(character: str) -> str:
    if character.isprintable() and not character.isspace() and not unicodedata.combining(character):
        return repr(character)
    return _CONTROLS.get(character) or unicodedata.name(character, "character").lower()
