"""Which scripts a text is written in, by its letters.

In: how often each character comes.  Out: `letters_by_script`, `SCRIPTS`.  Used by: the data card.
Read next: tally.py.
"""

import regex

SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya"),
    *("Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan", "Myanmar", "Georgian"),
    *("Armenian", "Hangul", "Ethiopic", "Cherokee", "Khmer", "Mongolian", "Hiragana", "Katakana", "Han"),
)
"""Unicode's names of the scripts that living languages are written in; others are told as "other"."""

SHAPES = {script: regex.compile(rf"\p{{Script={script}}}") for script in SCRIPTS}
LETTER = regex.compile(r"[\p{L}\p{M}]")


def letters_by_script(counts: dict[str, int]) -> dict[str, int]:
    """Add up letters, and the marks on them, by the script they are of.

    Args:
        counts: How often each character comes.

    Returns:
        Letters of each script that has any, the most frequent first; marks that belong to no script are left out.

    Example:
        >>> letters_by_script({"a": 4, "я": 6, "7": 9, "!": 2})
        {'Cyrillic': 6, 'Latin': 4}
    """
    totals: dict[str, int] = {}
    for character, count in counts.items():
        if LETTER.match(character) and not regex.match(r"\p{Script=Inherited}|\p{Script=Common}", character):
            script = next((script for script, shape in SHAPES.items() if shape.match(character)), "other")
            totals[script] = totals.get(script, 0) + count
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
