"""What a predictor of text is worth: bits spent on each held-out passage, so that the figure has an error.

In: bits and characters.  Out: `Score`.  Used by: every yardstick, and whoever scores a model.  Read next: chance.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """Bits that one predictor spends on held-out text.

    Attributes:
        name: "5-gram", "xz", …
        bits: For each passage, or one entry for all together where they cannot be told apart.
        characters: The lengths they were spent on; every held-out character is in here.
        note: What else must be said beside the figure: a part of the text, a window.
    """

    name: str
    bits: tuple[float, ...]
    characters: tuple[int, ...]
    note: str = ""

    @property
    def bits_per_character(self) -> float:
        """All bits over all characters."""
        return sum(self.bits) / sum(self.characters)

    @property
    def standard_error(self) -> float | None:
        """How far another choice of passages would move `bits_per_character`; None if there is but one.

        With r the ratio and e_k = bits_k - r·characters_k:  sqrt(m / (m - 1) · Σ e_k²) / Σ characters_k.

        Source: Cochran, "Sampling Techniques" (3rd edition, 1977), equation 6.13: the ratio estimator's error.

        Example:
            >>> round(Score("x", (20.0, 30.0), (10, 10)).standard_error, 3)
            0.5
        """
        m = len(self.bits)
        if m < 2:
            return None
        ratio = self.bits_per_character
        errors = (b - ratio * c for b, c in zip(self.bits, self.characters, strict=True))
        return math.sqrt(m / (m - 1) * sum(e * e for e in errors)) / sum(self.characters)

    def of_passages(self, chosen: slice) -> Score:
        """The score on some of the passages: `slice(0, None, 2)` takes the even ones.

        Args:
            chosen: Which.

        Returns:
            Their score; of a single passage, which is not to be parted, that of all.
        """
        if not self.bits[chosen]:
            return self
        return Score(self.name, self.bits[chosen], self.characters[chosen], self.note)

    def lead_over(self, other: Score) -> tuple[float, float | None]:
        """By how many bits per character this predictor is better than another on the same passages.

        A passage that is hard is hard for both, so the error of the difference is far smaller than that of each.

        Args:
            other: Its rival.

        Returns:
            Bits per character, positive if this one is better, and their standard error; None if there is none.

        Example:
            >>> Score("a", (20.0, 40.0), (10, 10)).lead_over(Score("b", (22.0, 42.0), (10, 10)))
            (0.2, 0.0)
        """
        if self.characters != other.characters:
            return other.bits_per_character - self.bits_per_character, None
        saved = tuple(theirs - ours for ours, theirs in zip(self.bits, other.bits, strict=True))
        lead = Score("", saved, self.characters)
        return lead.bits_per_character, lead.standard_error
