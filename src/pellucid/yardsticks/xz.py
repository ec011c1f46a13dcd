"""xz: what a general compressor spends on the held-out text when it has the training text before it.

In: both sides of the split.  Out: `xz`.  Used by: measure.py.  Read next: measure.py.
"""

from __future__ import annotations

import lzma
from collections.abc import Sequence

from pellucid.yardsticks.score import Score


def xz(training: Sequence[str], held_out: Sequence[str]) -> Score:
    """Score `xz -9e`.

    bits = 8 · (bytes of xz(training + held-out) - bytes of xz(training)), the text in UTF-8

    The passages follow one another, so they have one score together.

    Args:
        training: The training text, in parts.
        held_out: The held-out passages.

    Returns:
        The score, without a standard error.

    Example:
        >>> xz(["to be or not to be. " * 50], ["to be or not to be. "]).bits_per_character < 2
        True
    """
    before, after = "".join(training).encode(), "".join(held_out).encode()
    preset = 9 | lzma.PRESET_EXTREME
    size = len(lzma.compress(before + after, preset=preset)) - len(lzma.compress(before, preset=preset))
    return Score("xz", (8.0 * size,), (sum(map(len, held_out)),))
