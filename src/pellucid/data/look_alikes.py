"""Letters that look alike and are not the same: within a text, and between a prompt and a text.

A model of characters that has read ی (U+06CC) does not know ي (U+064A), and learns one word as two where a text mixes
them. Nothing is changed here: what is found is told.

In: the code points of pieces; a prompt and an alphabet.  Out: `LookAlikes`, `told_differences`.
Used by: survey.py, whoever takes a prompt.  Read next: boilerplate.py.
Source: Unicode Standard Annex 15 (normal forms); pairs from Unicode Technical Standard 39 (confusables), those that
keyboards and converters really mix up.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterator

import numpy as np

ARABIC_AND_PERSIAN = (("ي", "ی"), ("ى", "ی"), ("ك", "ک"))
"""A letter of Arabic keyboards, and the Persian and Urdu one that looks the same in a word."""

LATIN = "ABCEHKMOPTXaceopxyi"
CYRILLIC = "АВСЕНКМОРТХасеорхуі"
GREEK_LATIN = tuple(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo", strict=True))
PUNCTUATION = (
    *(("'", quote) for quote in "‘’"),
    *(('"', quote) for quote in "“”"),
    *(("-", dash) for dash in "‐–—"),
    ("...", "…"),
    (" ", "\u00a0"),
)
PAIRS = (
    *ARABIC_AND_PERSIAN,
    *zip(LATIN, CYRILLIC, strict=True),
    *GREEK_LATIN,
    *zip("٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", strict=True),
    *zip("0123456789", "٠١٢٣٤٥٦٧٨٩", strict=True),
    *zip("0123456789", "۰۱۲۳۴۵۶۷۸۹", strict=True),
    *zip(",.!?:;()", "，．！？：；（）", strict=True),
    (".", "。"),
    *PUNCTUATION,
)
MARKS = np.array([*range(0x300, 0x345), 0x653, 0x654, 0x655, 0x93C, 0x9BC, 0x3099, 0x309A, *range(0x1161, 0x1176)])
"""Marks, and vowels of Korean, that compose with the letter before them."""

FEWEST = 3  # a single letter is a quotation, or a slip worth no sentence


class LookAlikes:
    """Watches the pieces of a text go by.

    The costly looks are taken only once a text has a letter that could be of a mixture.

    Args:
        used: Which code points the text has had so far; whoever owns it marks a piece's before the piece is shown.
    """

    def __init__(self, used: np.ndarray) -> None:
        self._used = used
        self._composed: set[int] = set()  # letters for which the text also uses a letter and a mark
        self._pairs: Counter[str] = Counter()
        self._latin_in_cyrillic = 0
        self._example = ""

    def look(self, piece: str, codes: np.ndarray) -> None:
        """Look at a piece.

        Args:
            piece: The text.
            codes: Its code points.
        """
        if self._used[MARKS].any():
            self._look_for_marks(codes)
        if self._used[ARABIC_CODES].any():
            for letter in ARABIC_LETTERS:
                self._pairs[letter] += piece.count(letter)
        if self._used[CYRILLIC_CODES].any() and self._used[LATIN_CODES].any():
            self._look_for_latin(piece, codes)

    def notes(self) -> Iterator[str]:
        """What is to be told.

        Yields:
            Sentences.
        """
        both = [code for code in sorted(self._composed) if self._used[code]]
        if both:
            shown = ", ".join(f"“{chr(code)}”" for code in both[:4])
            yield (
                f"Some letters are written in two ways, as one character and as a letter with a mark ({shown}): to the"
                " model they differ (NFC and NFD)."
            )
        for arabic, persian in ARABIC_AND_PERSIAN:
            counts = self._pairs[arabic], self._pairs[persian]
            if min(counts) >= FEWEST:
                yield (
                    f"Look-alike letters: {described(arabic)} {counts[0]:,} times beside {described(persian)}"
                    f" {counts[1]:,} times: to the model they differ."
                )
        if self._latin_in_cyrillic >= FEWEST:
            yield (
                f"Latin letters within Cyrillic words, {self._latin_in_cyrillic:,} times, as in “{self._example}”:"
                " to the model they differ."
            )

    def _look_for_marks(self, codes: np.ndarray) -> None:
        marks = MARK_TABLE[np.minimum(codes, len(MARK_TABLE) - 1)]
        (places,) = np.nonzero(marks[1:])
        pairs = np.unique(codes[places].astype(np.int64) << 21 | codes[places + 1])
        for pair in pairs.tolist():
            composed = unicodedata.normalize("NFC", chr(pair >> 21) + chr(pair & 0x1FFFFF))
            if len(composed) == 1:
                self._composed.add(ord(composed))

    def _look_for_latin(self, piece: str, codes: np.ndarray) -> None:
        small = np.minimum(codes, len(CYRILLIC_TABLE) - 1)
        cyrillic = np.zeros(len(codes) + 2, dtype=bool)
        cyrillic[1:-1] = CYRILLIC_TABLE[small]
        within = LATIN_TABLE[small] & (cyrillic[:-2] | cyrillic[2:])
        found = int(np.count_nonzero(within))
        self._latin_in_cyrillic += found
        if found and not self._example:
            at = int(np.argmax(within))
            start, end = at, at + 1
            while start and piece[start - 1].isalpha() and at - start < 20:
                start -= 1
            while end < len(piece) and piece[end].isalpha() and end - at < 20:
                end += 1
            self._example = piece[start:end]


ARABIC_LETTERS = sorted({letter for pair in ARABIC_AND_PERSIAN for letter in pair})
ARABIC_CODES = np.array([ord(arabic) for arabic, _ in ARABIC_AND_PERSIAN])
LATIN_CODES = np.array([ord(letter) for letter in LATIN])
CYRILLIC_CODES = np.array([ord(letter) for letter in CYRILLIC])
MARK_TABLE = np.isin(np.arange(0x3100), MARKS)
LATIN_TABLE = np.isin(np.arange(0x531), LATIN_CODES)
CYRILLIC_TABLE = np.isin(np.arange(0x531), np.arange(0x400, 0x530))


def told_differences(prompt: str, alphabet: str) -> tuple[str, ...]:
    """Say of which letters in a prompt the text has only look-alikes.

    Args:
        prompt: What somebody wrote.
        alphabet: The characters of the text, or of a tokenizer.

    Returns:
        A sentence for each such letter; none if the prompt has nothing of the kind. Other letters that the text does
        not have are the tokenizer's to refuse.

    Example:
        >>> told_differences("علي", "علی")
        ('“ي” (U+064A ARABIC LETTER YEH) is not in the text, which writes “ی” (U+06CC ARABIC LETTER FARSI YEH).',)
    """
    known = set(alphabet)
    found = []
    for letter in dict.fromkeys(prompt):
        if letter in known:
            continue
        others = [*ALIKE.get(letter, ()), unicodedata.normalize("NFC", letter), unicodedata.normalize("NFD", letter)]
        other = next((other for other in others if other != letter and set(other) <= known), None)
        if other is None and unicodedata.combining(letter):
            before = [a + b for a, b in itertools.pairwise(prompt) if b == letter]
            other = next((c for pair in before if (c := unicodedata.normalize("NFC", pair)) in known), None)
        if other is not None:
            found.append(f"{described(letter)} is not in the text, which writes {described(other)}.")
    return tuple(found)


def described(text: str) -> str:
    """A few characters with their numbers and names.

    Example:
        >>> described("ك")
        '“ك” (U+0643 ARABIC LETTER KAF)'
    """
    names = " and ".join(f"U+{ord(c):04X} {unicodedata.name(c, 'without a name')}" for c in text)
    shown = text if text.isprintable() and not unicodedata.combining(text[0]) else ""
    return f"“{shown}” ({names})" if shown.strip() else names


def _alike() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for one, other in PAIRS:
        table.setdefault(one, []).append(other)
        table.setdefault(other, []).append(one)
    return table


ALIKE = _alike()
