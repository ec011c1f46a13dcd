"""Which tokens may come next so that bytes stay UTF-8: a machine of eight states, run over every token beforehand.

A character is one to four bytes, and after some first bytes the second has a narrower range, because shorter spellings,
halves of surrogate pairs and numbers past U+10FFFF are not UTF-8. So eight states are enough: between characters, one
to three plain bytes missing, and after each of the four first bytes with a range of their own.

In: a tokenizer, or the bytes of its tokens.  Out: for each state and token the state it leads to, or `NOWHERE`.
Used by: generate/stream.py.  Read next: graphemes.py.
"""

import codecs
from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8

from pellucid.text.tokenizer import Tokenizer

BETWEEN, ONE_MISSING, TWO_MISSING, THREE_MISSING, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4 = range(8)
NUM_STATES = 8

NOWHERE = 8
"""Where a byte or a token leads that must not come."""

_READS: tuple[tuple[int, int, int, int], ...] = (
    # in state, a byte from, to, leads to: table 3-7 of the Unicode Standard, row by row
    (BETWEEN, 0x00, 0x7F, BETWEEN),
    (BETWEEN, 0xC2, 0xDF, ONE_MISSING),  # not C0, C1: they would spell ASCII with two bytes
    (BETWEEN, 0xE0, 0xE0, AFTER_E0),
    (BETWEEN, 0xE1, 0xEC, TWO_MISSING),
    (BETWEEN, 0xED, 0xED, AFTER_ED),
    (BETWEEN, 0xEE, 0xEF, TWO_MISSING),
    (BETWEEN, 0xF0, 0xF0, AFTER_F0),
    (BETWEEN, 0xF1, 0xF3, THREE_MISSING),
    (BETWEEN, 0xF4, 0xF4, AFTER_F4),
    (ONE_MISSING, 0x80, 0xBF, BETWEEN),
    (TWO_MISSING, 0x80, 0xBF, ONE_MISSING),
    (THREE_MISSING, 0x80, 0xBF, TWO_MISSING),
    (AFTER_E0, 0xA0, 0xBF, ONE_MISSING),  # lower: two bytes would do
    (AFTER_ED, 0x80, 0x9F, ONE_MISSING),  # higher: halves of surrogate pairs
    (AFTER_F0, 0x90, 0xBF, TWO_MISSING),  # lower: three bytes would do
    (AFTER_F4, 0x80, 0x8F, TWO_MISSING),  # higher: past U+10FFFF
)


def byte_table() -> UInt8[np.ndarray, "row column"]:
    """The machine: for each state, and `NOWHERE`, the state that each byte leads to.

    Example:
        >>> int(byte_table()[BETWEEN, ord("a")]), int(byte_table()[BETWEEN, 0x80])
        (0, 8)
    """
    table = np.full((NUM_STATES + 1, 256), NOWHERE, dtype=np.uint8)
    for state, first, last, following in _READS:
        table[state, first : last + 1] = following
    return table


def states_after(tokens: Sequence[bytes]) -> UInt8[np.ndarray, "row vocab"]:
    """The machine over whole tokens.

    A token without bytes (special, or an id that stands for nothing) may come only between characters. A token may not
    come either if it leads to where no token of this vocabulary goes on.

    Args:
        tokens: The bytes of each token, in id order.

    Returns:
        For each state and token the state it leads to, or `NOWHERE`.

    Source: the Unicode Standard, section 3.9, table 3-7 (well-formed UTF-8).

    Example:
        >>> states_after([b"a", b"\\xc3", b"\\xa9s", b""])[:2]
        array([[0, 1, 8, 0],
               [8, 8, 0, 8]], dtype=uint8)
    """
    lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
    starts = np.cumsum(lengths) - lengths
    joined, table = np.frombuffer(b"".join(tokens), dtype=np.uint8), byte_table()
    states = np.repeat(np.arange(NUM_STATES, dtype=np.uint8)[:, None], len(tokens), axis=1)
    states[1:, lengths == 0] = NOWHERE
    longest_first = np.argsort(-lengths, kind="stable")
    for place in range(int(lengths.max(initial=0))):
        reading = longest_first[: np.count_nonzero(lengths > place)]
        states[:, reading] = table[states[:, reading], joined[starts[reading] + place]]
    return _without_dead_ends(states)


def states_after_tokens(tokenizer: Tokenizer) -> UInt8[np.ndarray, "row vocab"]:
    """The machine over a tokenizer's tokens: a tenth of a second for 50,000 of them."""
    return states_after([tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)])


def bytes_begun(data: bytes) -> bytes:
    """The last bytes of some UTF-8 if they only begin a character; else none.

    Example:
        >>> bytes_begun("aé".encode()), bytes_begun("aé".encode()[:-1])
        (b'', b'\\xc3')
    """
    _, num_read = codecs.utf_8_decode(data, "replace", False)
    return data[num_read:]


def _without_dead_ends(states: UInt8[np.ndarray, "row vocab"]) -> UInt8[np.ndarray, "row vocab"]:
    """Forbid tokens after which no character can be finished any more, if the vocabulary lacks some bytes."""
    can_finish = np.zeros(NUM_STATES + 1, dtype=bool)
    can_finish[BETWEEN] = True
    for _ in range(NUM_STATES):  # each round finds the states that are one token further away
        can_finish[:NUM_STATES] |= can_finish[states].any(axis=1)
    states[~can_finish[states]] = NOWHERE
    return states
