"""Chance: what a predictor spends that knows the alphabet and nothing else.

In: both sides of the split.  Out: `chance`.  Used by: measure.py.  Read next: ngram.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pellucid.data import escape_bits
from pellucid.yardsticks.score import Score


def chance(training: Sequence[str], held_out: Sequence[str]) -> Score:
    """Score the uniform guess among the distinct characters of the training text.

    bits(c) = log2(d), with d the distinct characters; if the held-out text has new ones, d counts "a new one" too, and
    each new one costs `escape_bits` in place of log2(d).

    Args:
        training: The training text, in parts.
        held_out: The held-out passages.

    Returns:
        The score.

    Example:
        >>> chance(["abcd"], ["abba", "dad"]).bits_per_character
        2.0
    """
    alphabet = set().union(*training)
    escape = escape_bits(sum(map(len, training)), len(alphabet))
    new = [sum(c not in alphabet for c in passage) for passage in held_out]
    one = math.log2(len(alphabet) + any(new))
    bits = tuple((len(passage) - n) * one + n * escape for passage, n in zip(held_out, new, strict=True))
    return Score("chance", bits, tuple(map(len, held_out)))
