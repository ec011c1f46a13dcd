"""Witten–Bell n-grams of characters: what tables of counts reach, without a network.

Every string of k characters in the text gets a number, made from the number of its first k - 1 and its last character
(sorting gives equal strings equal numbers). Then counting is counting numbers, and all orders follow from one another,
each in one sort of the text.

In: both sides of the split.  Out: `witten_bell`.  Used by: measure.py.  Read next: xz.py.

Source: Witten and Bell, "The zero-frequency problem" (1991), method C; as an interpolation: Chen and Goodman, "An
empirical study of smoothing techniques" (1998), section 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pellucid.data import escape_bits
from pellucid.yardsticks.score import Score

HIGHEST_ORDER = 8  # the best is 3 to 6 on every text tried (Chinese 3, English plays 5)
CODE_POINTS = 0x110000  # Unicode's; the two numbers after the last stand for the beginning of a part


def witten_bell(training: Sequence[str], held_out: Sequence[str], *, highest: int = HIGHEST_ORDER) -> list[Score]:
    """Score the interpolated n-grams of every order.

    With n(·) counts in the training text, t(h) the number of distinct characters seen after the context h, and h'
    the context without its first character:

        P_k(c | h) = (n(hc) + t(h) · P_{k-1}(c | h')) / (n(h) + t(h)),     P_0(c) = 1 / (distinct characters)

    and P_k = P_{k-1} after a context that was never seen. A passage begins without context. A character that the
    training text never had costs `escape_bits`.

    Args:
        training: The training text, in parts; no string is counted across two parts.
        held_out: The held-out passages.
        highest: The highest order; order k looks at k - 1 characters before the one it predicts.

    Returns:
        The scores of the orders 1 (letter counts) to `highest`.

    Example:
        >>> letters, pairs = witten_bell(["abab" * 100], ["abab"], highest=2)
        >>> letters.bits_per_character > 0.99, pairs.bits_per_character < 0.3
        (True, True)
    """
    symbols, training_symbols, distinct = _symbols(training, held_out)
    places = np.arange(len(symbols))
    real = symbols < distinct
    counted = places[real & (places < training_symbols)]
    scored = places[real & (places >= training_symbols)]
    lengths = [len(passage) for passage in held_out]
    passage_of = np.repeat(np.arange(len(held_out)), [length + 1 for length in lengths])[scored - training_symbols]
    missing = np.array(lengths) - np.bincount(passage_of, minlength=len(lengths))
    escapes = missing * escape_bits(len(counted), distinct)

    scores = []
    strings = np.zeros(len(symbols), dtype=np.int64)  # the number of the string of k - 1 characters that ends here
    probability = np.full(len(scored), 1 / distinct)
    for order in range(1, highest + 1):
        contexts = np.concatenate(([0], strings[:-1]))
        # at most text length × alphabet, far below 2^63
        pairs, strings = np.unique(contexts * (distinct + 3) + symbols, return_inverse=True)
        context_of_pair = pairs // (distinct + 3)
        pair_counts = np.bincount(strings[counted], minlength=len(pairs))
        size = int(contexts.max()) + 1
        context_counts = np.bincount(context_of_pair, weights=pair_counts, minlength=size)
        followers = np.bincount(context_of_pair[pair_counts > 0], minlength=size)
        here = contexts[scored]
        seen, kinds = context_counts[here], followers[here]
        mixed = (pair_counts[strings[scored]] + kinds * probability) / np.maximum(seen + kinds, 1)
        probability = np.where(seen > 0, mixed, probability)
        bits = np.bincount(passage_of, weights=-np.log2(probability), minlength=len(lengths)) + escapes
        scores.append(Score(f"{order}-gram" if order > 1 else "letters", tuple(bits.tolist()), tuple(lengths)))
    return scores


def _symbols(training: Sequence[str], held_out: Sequence[str]) -> tuple[np.ndarray, int, int]:
    """Number the characters 0 … d - 1 and a new one d; give the text, the training part's length, and d.

    A part begins with a symbol of its own, d + 1 in training and d + 2 in held-out text, so that a context that
    reaches over the beginning of a held-out passage is one that was never seen.
    """
    training_parts = [part for text in training for part in ([CODE_POINTS], _code_points(text))]
    held_out_parts = [part for text in held_out for part in ([CODE_POINTS + 1], _code_points(text))]
    points = np.concatenate(training_parts + held_out_parts)
    training_symbols = sum(map(len, training_parts))
    used = np.zeros(CODE_POINTS + 2, dtype=bool)
    used[points[:training_symbols]] = True
    used[CODE_POINTS:] = False
    distinct = int(used.sum())
    numbers = np.full(CODE_POINTS + 2, distinct)
    numbers[used] = np.arange(distinct)
    numbers[CODE_POINTS:] = distinct + 1, distinct + 2
    return numbers[points], training_symbols, distinct


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.int64)
