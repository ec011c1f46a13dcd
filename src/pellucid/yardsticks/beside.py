"""Yardsticks beside a model on a text that is no part of its own: each with a note on what it knew.

In: the text in parts, the model's training text if it is there.  Out: `measure_beside`.
Used by: the command line.  Read next: known.py.
"""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from dataclasses import replace

from pellucid.yardsticks.chance import chance
from pellucid.yardsticks.ngram import witten_bell
from pellucid.yardsticks.score import Score
from pellucid.yardsticks.xz import xz


def measure_beside(parts: Sequence[str], training: Sequence[str] = (), *, training_share: float = 1.0) -> list[Score]:
    """Measure simple predictors on a text, about two seconds for a million characters.

    Args:
        parts: The text, in the parts that the model is scored on.
        training: What the model learned from, in parts, or some of it; nothing if that is not there.
        training_share: Which part of it this is.

    Returns:
        Chance, then, of the training text, letter counts and the best n-gram, then xz alone and after it. Every score's
        note says what it is.

    Example:
        >>> [score.name for score in measure_beside(["to be or not to be"], ["what is it to be"])][:2]
        ['chance', 'letters']
    """
    alone = _xz_alone(parts)
    if not training:
        letters = len(set().union(*parts))
        note = f"a guess among the {letters:,} characters of this very text"
        return [replace(chance(parts, parts), note=note), alone]
    letters = len(set().union(*training))
    whose = "of the text it learned from"
    whose = whose if training_share >= 1 else f"of {training_share:.0%} {whose}"
    ngrams = witten_bell(training, parts)
    best = min(ngrams, key=lambda score: score.bits_per_character)
    scores = [
        replace(chance(training, parts), note=f"a guess among the {letters:,} characters {whose}"),
        replace(ngrams[0], note=f"how often each comes, in {whose.removeprefix('of ')}"),
    ]
    if best.name != ngrams[0].name:
        scores.append(replace(best, note=f"a table {whose}; the length that does best here"))
    after = replace(
        xz(training, parts), name="xz after", note=f"xz when it has read {whose.removeprefix('of ')} before"
    )
    return [*scores, alone, after]


def _xz_alone(parts: Sequence[str]) -> Score:
    """The whole .xz file: a compressor that begins with nothing."""
    size = len(lzma.compress("".join(parts).encode(), preset=9 | lzma.PRESET_EXTREME))
    note = "xz of this text alone: it begins with nothing, and learns as it goes"
    return Score("xz", (8.0 * size,), (sum(map(len, parts)),), note)
