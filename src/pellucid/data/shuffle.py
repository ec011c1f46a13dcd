"""A random order of any number of things that needs no memory: where does the i-th come from?

A Feistel network is a cipher for numbers: it maps 0 … 2^b - 1 one to one, whatever its round function is. For n things
the next 2^b ≥ n is taken, and a result outside 0 … n - 1 is mapped again until it falls inside, which keeps the map
one to one. So the i-th of ten million rows is found without laying the others out, and the order depends on the key
and on n alone, never on a library's version.

In: indices, n, a key.  Out: `shuffled`, `mixed`.  Used by: batches.py.  Read next: batches.py.

Source: Luby and Rackoff, "How to construct pseudorandom permutations from pseudorandom functions" (1988); Black and
Rogaway, "Ciphers with arbitrary finite domains" (2002), section 3, for mapping again; the mixing function is
splitmix64's (Steele, Lea and Flood 2014, figure 17).
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDS = 6  # an even number; four make a strong permutation of large domains, two more for the small ones
WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, splitmix64's step


def mixed(*numbers: int) -> int:
    """Hash whole numbers into 64 bits that look random.

    Args:
        *numbers: Any integers; their order counts.

    Returns:
        An integer from 0 to 2^64 - 1.

    Example:
        >>> mixed(1, 2) == mixed(1, 2), mixed(1, 2) == mixed(2, 1)
        (True, False)
    """
    state = 0
    for number in numbers:
        state = _mix((state ^ (number & WORD)) + GOLDEN & WORD)
    return state


def shuffled(indices: np.ndarray, count: int, *, key: int) -> np.ndarray:
    """Map indices one to one onto 0 … count - 1 in an order chosen by the key.

    Args:
        indices: Integers from 0 to count - 1.
        count: How many things there are.
        key: Chooses the order.

    Returns:
        For each index, which thing comes there, as int64.

    Example:
        >>> sorted(shuffled(np.arange(5), 5, key=1).tolist())
        [0, 1, 2, 3, 4]
    """
    bits = max(2, (count - 1).bit_length())
    keys = [mixed(key, turn) for turn in range(ROUNDS)]
    places = _encipher(np.asarray(indices, dtype=np.uint64), bits, keys)
    while (outside := places >= count).any():
        places[outside] = _encipher(places[outside], bits, keys)
    return places.astype(np.int64)


def _encipher(numbers: np.ndarray, bits: int, keys: list[int]) -> np.ndarray:
    """One pass through the network: (left, right) → (right, left XOR f(right)), once a round.

    With an odd number of bits the right half is one wider; the halves change places, so after an even number of
    rounds they have their widths again.
    """
    width, other_width = bits // 2, bits - bits // 2
    left, right = numbers >> other_width, numbers & ((1 << other_width) - 1)
    for key in keys:
        left, right = right, left ^ (_mix(right ^ key) & ((1 << width) - 1))
        width, other_width = other_width, width
    return left << other_width | right


def _mix(words: Any) -> Any:
    """Splitmix64's finaliser, of one number or an array: every bit of the input moves every bit of the output."""
    words = (words ^ (words >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    words = (words ^ (words >> 27)) * 0x94D049BB133111EB & WORD
    return words ^ (words >> 31)
