"""How a text is cut into tokens, made visible: spaces and line ends marked, halves of characters as ⟨E7 99⟩.

What is shown is safe to print anywhere: no control character, no change of writing direction, nothing that would join
the mark before it.

In: a tokenizer and a text, or ids.  Out: spans to paint.  Used by: the command line, inspection, the report.
Read next: data/sources.py.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import index
from typing import SupportsIndex

from pellucid.text.tokenizer import TextTokenizer

_MARKS = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍", "\xa0": "⍽"}
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")  # categories without a picture of their own
_CARRIER = "◌"  # what Unicode's charts show combining marks on


@dataclass(frozen=True)
class TokenSpan:
    """One token of a text."""

    token_id: int
    """Its id."""
    token: bytes
    """The bytes it stands for; none for a special token."""
    shown: str
    """What to show for it: one line, safe to print."""
    is_special: bool
    """Whether it is a special token, shown by its name."""

    @property
    def is_part_of_character(self) -> bool:
        """Whether it begins or ends inside a character."""
        try:
            self.token.decode("utf-8")
        except UnicodeDecodeError:
            return True
        return False

    @property
    def lines(self) -> list[str]:
        """What to show, in parts between which a new line begins: `["·↵", "··if"]` for an indented second line."""
        if self.is_special:
            return [self.shown]
        first, *others = self.token.split(b"\n")  # this byte is never a part of another character
        parts = [first + b"\n" * bool(others), *(part + b"\n" for part in others[:-1]), *others[-1:]]
        return [visible(part) for part in parts]


def visible(token: bytes) -> str:
    """Show bytes so that nothing in them is missed and nothing in them acts.

    Args:
        token: Bytes, often a part of some UTF-8.

    Example:
        >>> visible(b" the\\n"), visible("癖".encode()[:2]), visible("e\\u0301".encode()[1:]), visible(b"\\x1b[0m")
        ('·the↵', '⟨E7 99⟩', '◌\u0301', '⟨1B⟩[0m')
    """
    shown, stray = "", b""
    while token:
        try:
            characters, broken, token = token.decode("utf-8"), b"", b""
        except UnicodeDecodeError as error:
            characters, broken = token[: error.start].decode("utf-8"), token[error.start : error.end]
            token = token[error.end :]
        if characters:
            shown += _bytes_shown(stray) + "".join(_character_shown(character) for character in characters)
            stray = b""
        stray += broken
    shown += _bytes_shown(stray)
    return _CARRIER + shown if shown and unicodedata.category(shown[0]).startswith("M") else shown


def spans(tokenizer: TextTokenizer, text: str, *, allow_special: bool = False) -> list[TokenSpan]:
    """Cut a text into its tokens.

    Args:
        tokenizer: The tokenizer.
        text: The text.
        allow_special: Whether text that spells a special token is that token.

    Raises:
        TokenizerError: if the text holds characters that have no id.

    Example:
        >>> from pellucid.text import train_byte_pairs
        >>> tokenizer = train_byte_pairs(["the rest, the best, "], 259)
        >>> [span.shown for span in spans(tokenizer, "the 癖")]
        ['t', 'he', '·', '⟨E7⟩', '⟨99⟩', '⟨96⟩']
    """
    return list(spans_of_ids(tokenizer, tokenizer.encode(text, allow_special=allow_special)))


def spans_of_ids(tokenizer: TextTokenizer, ids: Iterable[SupportsIndex]) -> Iterator[TokenSpan]:
    """Show the tokens of given ids: what a model was fed, or wrote.

    Raises:
        TokenizerError: if an id is outside the vocabulary.
    """
    names = {token_id: token for token, token_id in tokenizer.special_tokens.items()}
    known: dict[int, TokenSpan] = {}
    for token_id in map(index, ids):
        if token_id not in known:
            token = tokenizer.token_bytes(token_id)
            shown = visible(names[token_id].encode("utf-8") if token_id in names else token)
            known[token_id] = TokenSpan(token_id, token, shown, token_id in names)
        yield known[token_id]


def _bytes_shown(stray: bytes) -> str:
    return f"⟨{stray.hex(' ').upper()}⟩" if stray else ""


def _character_shown(character: str) -> str:
    if character in _MARKS:
        return _MARKS[character]
    if unicodedata.category(character) in _HIDDEN:
        return f"⟨{ord(character):02X}⟩" if character < "\x80" else f"⟨U+{ord(character):04X}⟩"
    return character
