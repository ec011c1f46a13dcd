"""Characters to ids by one look-up per character, in numpy.

A text is an array of code points, and a tokenizer of single characters is an array from code point to id: encoding is
indexing. The `tokenizers` library gives the same ids some fifty times slower.

In: texts.  Out: ids.  Used by: tokenizer.py, characters.py.  Read next: definition.py.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Int64, UInt32

UNKNOWN = -1
"""What stands in the ids for a character that has none."""


def code_points(text: str) -> UInt32[np.ndarray, " position"]:
    """Give the code point of each character, lone surrogates included.

    Example:
        >>> code_points("aé€")
        array([  97,  233, 8364], dtype=uint32)
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32, copy=False)


def distinct_characters(texts: Iterable[str]) -> list[str]:
    """Collect the characters of any amount of text, in code point order.

    Example:
        >>> distinct_characters(["baa", "cab"])
        ['a', 'b', 'c']
    """
    seen = np.zeros(0x110000, dtype=bool)  # one flag for each code point there is
    for text in texts:
        seen[code_points(text)] = True
    return [chr(code) for code in np.flatnonzero(seen)]


class CharacterTable:
    """An array from code point to id.

    Args:
        ids: The id of each character.

    Example:
        >>> CharacterTable({"a": 1, "b": 2}).encode("abc")
        array([ 1,  2, -1])
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        # One entry more than the highest code point needs: everything above is looked up there.
        self._ids = np.full(max(map(ord, ids), default=-1) + 2, UNKNOWN, dtype=np.int64)
        for character, token_id in ids.items():
            self._ids[ord(character)] = token_id

    def encode(self, text: str) -> Int64[np.ndarray, " position"]:
        """Give the id of each character, or `UNKNOWN`."""
        return self._ids[np.minimum(code_points(text), len(self._ids) - 1)]
