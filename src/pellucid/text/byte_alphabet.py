"""The 256 bytes as 256 printable characters: the spelling in which a `tokenizer.json` writes byte-level tokens.

A token of a byte-level vocabulary is a run of bytes, often half a character, but JSON holds only text. GPT-2 gave every
byte a printable stand-in: the printable bytes of Latin-1 stand for themselves, the other 68 (space, controls, soft
hyphen) borrow the letters from U+0100 on. So `" the"` is written `"Ġthe"`.

In: bytes, or text.  Out: text in that spelling, or bytes; UTF-8 of a text that has one.
Used by: definition.py, byte_pairs.py, byte_pairs_by_hand.py.  Read next: splitting.py.
"""

from pellucid.errors import TokenizerError

NUM_BYTES = 256

_PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0x100)} - {0xAD}
_BORROWED = [byte for byte in range(NUM_BYTES) if byte not in _PRINTABLE]
CHARACTERS: tuple[str, ...] = tuple(
    chr(byte) if byte in _PRINTABLE else chr(0x100 + _BORROWED.index(byte)) for byte in range(NUM_BYTES)
)
"""The character that stands for each byte."""

_BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}


def spell(token: bytes) -> str:
    """Write bytes in the stand-in characters.

    Source: GPT-2's byte encoder (Radford et al. 2019); the same table as `tokenizers.pre_tokenizers.ByteLevel`.

    Example:
        >>> spell(" é".encode())
        'ĠÃ©'
    """
    return "".join(CHARACTERS[byte] for byte in token)


def unspell(spelling: str) -> bytes | None:
    """Read bytes back from the stand-in characters; None if a character of the spelling stands for no byte.

    Example:
        >>> unspell("ĠÃ©").decode(), unspell("a b")
        (' é', None)
    """
    try:
        return bytes([_BYTES[character] for character in spelling])
    except KeyError:
        return None


def utf8(text: str) -> bytes:
    """Encode a text as UTF-8, or say which half character it holds.

    Raises:
        TokenizerError: if the text holds a lone surrogate (half of a UTF-16 pair, as file names and broken JSON may),
            which no UTF-8 and so no byte-level tokenizer can write.

    Example:
        >>> utf8("é")
        b'\\xc3\\xa9'
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TokenizerError(
            "text made of whole characters",
            came=f"the lone surrogate U+{ord(text[error.start]):04X} as character {error.start + 1}",
            remedy="remove it, or read the text again with its true encoding",
        ) from None
