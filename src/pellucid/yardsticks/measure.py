"""All yardsticks on one split: what the loss of a model is to be compared with.

In: a `SplitSample`.  Out: `Yardsticks`, `measure_yardsticks`.  Used by: train, the report.  Read next: beside.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pellucid.data import SplitSample, escape_bits
from pellucid.yardsticks.chance import chance
from pellucid.yardsticks.ngram import witten_bell
from pellucid.yardsticks.score import Score
from pellucid.yardsticks.xz import xz


@dataclass(frozen=True)
class Yardsticks:
    """Scores on the same held-out text, from the poorest predictor to the best tables can do.

    Attributes:
        chance: Guessing among the alphabet.
        ngrams: Witten–Bell n-grams of orders 1 to 8.
        xz: The compressor.
        bytes_per_character: Of the held-out text in UTF-8: bits per character do not compare across scripts, bits per
            byte do.
        unseen: How many held-out characters the training text never has.
        escape_bits: What each of them costs every predictor that knows characters alone.
    """

    chance: Score
    ngrams: tuple[Score, ...]
    xz: Score
    bytes_per_character: float
    unseen: int = 0
    escape_bits: float = 0.0

    @property
    def letters(self) -> Score:
        """Letter counts: the 1-gram."""
        return self.ngrams[0]

    @property
    def best_ngram(self) -> Score:
        """The n-gram that does best on this very held-out text: the strongest of its kind."""
        return min(self.ngrams, key=lambda score: score.bits_per_character)

    @property
    def shown(self) -> tuple[Score, ...]:
        """Chance, letters, best n-gram, xz."""
        return self.chance, self.letters, self.best_ngram, self.xz


def measure_yardsticks(sample: SplitSample) -> Yardsticks:
    """Measure every yardstick on a sample of the split; about a second for a million characters.

    Args:
        sample: From `sample_split`. If it is not the whole text, every score's note says so.

    Returns:
        The yardsticks.

    Example:
        >>> from pellucid.data import builtin_corpus, sample_split
        >>> found = measure_yardsticks(sample_split(builtin_corpus()))
        >>> [score.name for score in found.shown][:2], len(found.ngrams)
        (['chance', 'letters'], 8)
    """
    note = "" if sample.complete else f"measured on {sample.share:.1%} of the text, beside each held-out passage"
    texts = (sample.training, sample.held_out)
    scores = [replace(score, note=note) for score in (chance(*texts), *witten_bell(*texts), xz(*texts))]
    training, held_out = "".join(sample.training), "".join(sample.held_out)
    seen = set(training)
    return Yardsticks(
        chance=scores[0],
        ngrams=tuple(scores[1:-1]),
        xz=scores[-1],
        bytes_per_character=len(held_out.encode("utf-8")) / len(held_out),
        unseen=sum(character not in seen for character in held_out),
        escape_bits=escape_bits(len(training), len(seen)),
    )
