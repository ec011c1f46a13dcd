"""What `pellucid evaluate` found out, as one record: the screen, the JSON and the page say the same.

In: scores.  Out: `Findings`.  Used by: evaluate_run.py, evaluate_lines.py, evaluate_page.py.
Read next: evaluate_lines.py.
"""

from dataclasses import dataclass
from functools import cached_property

from pellucid.inspection import TextScore
from pellucid.yardsticks import Score


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A model's figures on a text, and those of others on the same text."""

    model: str
    """The path it was loaded from."""
    documents: tuple[TextScore, ...]
    score: Score
    """The model's, by the parts whose spread is its error."""
    parts: str
    """What these are: documents, passages, or none."""
    yardsticks: tuple[Score, ...]
    """Of others, each with a note on what it knew."""
    context_length: int
    stride: int
    held_out: bool
    """Whether the text is the run's own held-out text."""
    escape_bits: float
    of_answers: bool = False
    """Whether that text is answers in conversations, scored where they stand."""
    precision: str = "auto"
    """What the weights were held in."""
    as_stored: Score | None = None
    """The same model's score with its weights as they are stored, if they were held in something else."""
    known: float | None = None
    """The share of the text that stands word for word in what the model learned from; None if nobody can tell."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """For reading and scoring, the yardsticks apart."""

    @cached_property
    def together(self) -> TextScore:
        """All documents as one text."""
        return TextScore.of_all(self.documents)

    @property
    def tokens_per_second(self) -> float:
        """How fast it went."""
        return self.together.tokens / max(self.seconds, 1e-9)

    @property
    def lost(self) -> tuple[float, float | None] | None:
        """By how many bits per character it is worse than with its weights as stored, and the error of this."""
        return None if self.as_stored is None else self.as_stored.lead_over(self.score)

    @property
    def best_table(self) -> Score | None:
        """The best letter table among the yardsticks, if one was measured."""
        tables = [score for score in self.yardsticks if score.name == "letters" or score.name.endswith("-gram")]
        return min(tables, key=lambda score: score.bits_per_character, default=None)

    @property
    def lead(self) -> tuple[float, float | None] | None:
        """By how much the model is better than that table on the same characters, and the error of this."""
        table = self.best_table
        same = table is not None and sum(table.characters) == sum(self.score.characters)
        return self.score.lead_over(table) if table is not None and same else None
