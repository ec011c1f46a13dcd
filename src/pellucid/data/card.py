"""The data card: what a text is like, in figures and in sentences, to be looked at before anything is learned from it.

In: a surveyed text, tallies of its pieces.  Out: `TextCard`, `CardCounts`.  Used by: prepare_folder.py, the command
line, the report.  Read next: prepared_folder.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pellucid.data.sources import Sources
from pellucid.data.split import Passage, split_of
from pellucid.data.survey import CODE_POINTS
from pellucid.text import Tally, letters_by_script
from pellucid.text.tally import FEWEST_CHARACTERS

SMALLEST_SHARE = 0.001  # of the letters: scripts with less are told together


@dataclass(frozen=True, kw_only=True)
class TextCard:
    """What a text is like."""

    characters: int
    utf8_bytes: int
    documents: int
    distinct_characters: int
    empty_documents: int
    """Left out."""
    duplicate_documents: int
    """Left out: their text had come before, to the letter."""
    letters_by_script: dict[str, int]
    lines: int
    """Lines that are not blank."""
    told_lines: int
    """Of these, lines of 20 characters or more."""
    repeated_lines: int
    """Of these, lines that had come before, word for word. They stay."""
    longest_line: int
    """In characters."""
    boilerplate: str
    """The sentence about licences, page numbers and running heads; empty if none was found."""
    held_out: str
    """The sentence about the split."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The card, to be read."""
        letters = sum(self.letters_by_script.values())
        shares = {script: count / letters for script, count in self.letters_by_script.items()}
        shown = [f"{script} {share:.1%}" for script, share in shares.items() if share >= SMALLEST_SHARE]
        if len(shown) < len(shares):
            shown.append(f"{len(shares) - len(shown)} more below {SMALLEST_SHARE:.1%} each")
        repeated = self.repeated_lines / max(1, self.told_lines)
        return (
            f"Size: {self.characters:,} characters, {self.distinct_characters:,} different; {self.utf8_bytes:,} bytes"
            f" in UTF-8; documents: {self.documents:,}.",
            f"Letters: {', '.join(shown) or 'none'}.",
            f"Documents left out: {self.duplicate_documents:,} that had come before, {self.empty_documents:,} empty."
            if self.duplicate_documents or self.empty_documents
            else "No document is empty, none came twice.",
            f"Lines: {self.lines:,} that are not blank, the longest of {self.longest_line:,} characters; of"
            f" {self.told_lines:,} with {FEWEST_CHARACTERS} characters or more, {self.repeated_lines:,}"
            f" ({repeated:.1%}) had come before, and stay.",
            self.boilerplate or "No licence, page numbers or running heads were found.",
            self.held_out,
        )


class CardCounts:
    """Adds up what is counted piece by piece; its state can be kept and put back.

    Args:
        state: What `state` gave before.

    Attributes:
        training_letters: How many different characters the training side has.
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self._counts = np.zeros(CODE_POINTS, dtype=np.int64)
        self._training = np.zeros(CODE_POINTS, dtype=bool)
        self._lines = self._longest = self._open = 0
        if state:
            self._counts[state["codes"]] = state["counts"]
            self._training[state["training_codes"]] = True
            self._lines, self._longest, self._open = state["lines"], state["longest"], state["open"]

    def add(self, tally: Tally, *, training: bool) -> None:
        """Add what was counted in some passages.

        Args:
            tally: The counts.
            training: Whether the passages are for training.
        """
        self._counts[tally.codes] += tally.counts
        if training:
            self._training[tally.codes] = True
        self._lines += tally.lines
        self._longest = max(self._longest, tally.longest)

    def pass_by(self, passage: Passage) -> None:
        """Let a passage go by, in order: its last line may go on in the next.

        Args:
            passage: The text.
        """
        first_end, last_end = passage.text.find("\n"), passage.text.rfind("\n")
        begun = 0 if passage.opens else self._open
        first = begun + (first_end if first_end >= 0 else len(passage.text))
        self._open = len(passage.text) - last_end - 1 if last_end >= 0 else first
        self._longest = max(self._longest, first)

    @property
    def training_letters(self) -> int:
        """How many different characters the training side has."""
        return int(self._training.sum())

    def state(self) -> dict[str, Any]:
        """Everything so far, for JSON."""
        codes = np.flatnonzero(self._counts)
        return {
            "codes": codes.tolist(),
            "counts": self._counts[codes].tolist(),
            "training_codes": np.flatnonzero(self._training).tolist(),
            "lines": self._lines,
            "longest": self._longest,
            "open": self._open,
        }

    def card(self, sources: Sources, *, told_lines: int, repeated_lines: int) -> TextCard:
        """The card, when all was added.

        Args:
            sources: The text.
            told_lines: Lines whose hashes were compared.
            repeated_lines: How many of them had come before.
        """
        codes = np.flatnonzero(self._counts)
        counts = dict(zip(map(chr, codes.tolist()), self._counts[codes].tolist(), strict=True))
        return TextCard(
            characters=sources.characters,
            utf8_bytes=sources.utf8_bytes,
            documents=len(sources.documents),
            distinct_characters=len(codes),
            empty_documents=len(sources.documents.empty),
            duplicate_documents=len(sources.documents.copies),
            letters_by_script=letters_by_script(counts),
            lines=self._lines,
            told_lines=told_lines,
            repeated_lines=repeated_lines,
            longest_line=self._longest,
            boilerplate=sources.boilerplate,
            held_out=split_of(sources).sentence,
        )
