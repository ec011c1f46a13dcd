"""One or several prepared folders, as the text of a run: what training asks of `Sources`, answered from the cards.

Several folders are mixed in stated proportions. Held-out passage k is then the k-th of each folder, one after another,
and so are the sample's passages, so that all figures are of the same characters.

In: paths, weights.  Out: `PreparedText`, `open_prepared_text`.  Used by: train, the command line.
Read next: shuffle.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.data.mixture import parse_weights
from pellucid.data.pieces import printable
from pellucid.data.prepare import HeldOutPiece, PreparedData
from pellucid.data.prepared_folder import PreparedFolder
from pellucid.data.split import Split, SplitSample
from pellucid.errors import DataError
from pellucid.text import TextTokenizer


class PreparedText:
    """The text of a run that begins with prepared folders.

    Args:
        folders: At least one, all of one tokenizer.
        weights: The proportions of their rows; None for as long as they are.

    Raises:
        DataError: if their tokenizers differ, or a folder was given twice.

    Attributes:
        folders: As given; likewise `weights`.
        characters: Length of the whole text, all folders together; likewise the next.
        utf8_bytes: Its length in UTF-8.
        documents: As many numbers as there are documents.
        alphabet: Its distinct characters.
        fingerprint: Of one folder its text's; of several a SHA-256 over theirs and the weights.
        held_out_percent: The largest of the folders'.
        split: How it was split.
        notes: Sentences for the user.
    """

    def __init__(self, folders: Sequence[PreparedFolder], weights: tuple[Fraction, ...] | None = None) -> None:
        self.folders, self.weights = tuple(folders), weights
        _require_one_tokenizer(self.folders)
        cards = [folder.card for folder in self.folders]
        self.characters = sum(card.text.characters for card in cards)
        self.utf8_bytes = sum(card.text.utf8_bytes for card in cards)
        self.documents = range(sum(card.text.documents for card in cards))
        self.alphabet = "".join(sorted(set().union(*(card.alphabet for card in cards))))
        self.fingerprint = cards[0].fingerprint
        if len(cards) > 1:
            told = ",".join([*(card.fingerprint for card in cards), str(weights)])
            self.fingerprint = hashlib.sha256(told.encode()).hexdigest()
        self.split = _joined_split([card.split for card in cards])
        self.held_out_percent = self.split.percent
        self.notes = (*_told_parts(self.folders, weights), *_told_copies(self.folders))

    def tokenizer(self) -> TextTokenizer:
        """The tokenizer of all of them."""
        return self.folders[0].tokenizer()

    def data(self, tokenizer: TextTokenizer) -> PreparedData:
        """Both sides as ids.

        Args:
            tokenizer: Theirs.
        """
        each = [folder.data(tokenizer) for folder in self.folders]
        if len(each) == 1:
            return each[0]
        return PreparedData(
            parts=tuple(part for data in each for part in data.parts),
            held_out=_joined_pieces([data.held_out for data in each if data.held_out]),
            text_fingerprint=self.fingerprint,
            escape_bits=max(data.escape_bits for data in each),
            weights=self.weights,
        )

    def sample(self) -> SplitSample:
        """Both sides as text, or parts of them: what the yardsticks look at."""
        each = [folder.sample() for folder in self.folders]
        if len(each) == 1:
            return each[0]
        lengths = [sum(map(len, (*sample.training, *sample.held_out))) for sample in each]
        held_out = [sample.held_out for sample in each if sample.held_out]
        return SplitSample(
            training=tuple(map("".join, zip(*(sample.training for sample in each), strict=True))),
            held_out=tuple(map("".join, zip(*held_out, strict=True))),
            complete=all(sample.complete for sample in each),
            share=sum(lengths) / self.characters,
        )

    def facts(self) -> dict[str, Any]:
        """Where the folders are and what is in them, for run.json."""
        weights = None if self.weights is None else [str(weight) for weight in self.weights]
        return {"prepared": [folder.facts() for folder in self.folders], "weights": weights}

    @classmethod
    def reopen(cls, facts: dict[str, Any]) -> PreparedText:
        """The same folders again.

        Args:
            facts: What `facts` gave.

        Raises:
            DataError: if one of them is gone or has changed.
        """
        weights = facts["weights"] and tuple(map(Fraction, facts["weights"]))
        return cls([PreparedFolder.reopen(one) for one in facts["prepared"]], weights)


def open_prepared_text(paths: Sequence[Path], weights: str | None = None) -> PreparedText:
    """Open prepared folders as the text of a run.

    Args:
        paths: The folders.
        weights: Their proportions, as somebody writes them.

    Raises:
        DataError: if one cannot be used.
        ConfigError: if the weights make no sense.
    """
    parsed = parse_weights(weights, len(paths)) if weights is not None else None
    return PreparedText([PreparedFolder.open(path) for path in paths], parsed)


def _require_one_tokenizer(folders: Sequence[PreparedFolder]) -> None:
    for one, other in combinations(folders, 2):
        names = printable(str(one.path)), printable(str(other.path))
        if one.card.tokenizer != other.card.tokenizer:
            raise DataError(
                "prepared folders of one tokenizer",
                came=f"one with a vocabulary of {one.card.vocab_size:,} ({names[0]}) and another with"
                f" {other.card.vocab_size:,} ({names[1]})",
                remedy=f"prepare the second anew with --tokenizer {names[0]}",
            )
        if one.card.fingerprint == other.card.fingerprint:
            raise DataError(
                "different texts to be mixed", came=f"the same one in {names[0]} and {names[1]}", remedy="leave one out"
            )


def _joined_split(splits: Sequence[Split]) -> Split:
    """The split of all together; which documents are held out is told by the folders' own cards."""
    if len(splits) == 1:
        return splits[0]
    largest = max(splits, key=lambda split: split.percent)
    held_out = sum(split.held_out_characters for split in splits)
    documents = sum(split.documents for split in splits)
    kind = "passages" if held_out else "none"
    return replace(largest, held_out_characters=held_out, documents=documents, kind=kind)


def _joined_pieces(each: Sequence[tuple[HeldOutPiece, ...]]) -> tuple[HeldOutPiece, ...]:
    return tuple(
        HeldOutPiece(
            np.concatenate([piece.tokens for piece in pieces]),
            sum(piece.characters for piece in pieces),
            sum(piece.escaped for piece in pieces),
        )
        for pieces in zip(*each, strict=True)
    )


def _told_parts(folders: Sequence[PreparedFolder], weights: tuple[Fraction, ...] | None) -> list[str]:
    """What is in each part, and its proportion."""
    if len(folders) == 1:
        return []
    parts = weights or [Fraction(folder.card.training_tokens) for folder in folders]
    told = [
        f"{printable(str(folder.path))} {float(part / sum(parts)):.1%} ({folder.card.training_tokens:,} tokens)"
        for folder, part in zip(folders, parts, strict=True)
    ]
    return [f"Mixed: {', '.join(told)}."]


def _told_copies(folders: Sequence[PreparedFolder]) -> list[str]:
    """Documents that two parts have in common: within one folder copies are left out, between two they are told."""
    notes = []
    for one, other in combinations(folders, 2):
        both = len(np.intersect1d(one.documents(), other.documents()))
        if both:
            names = f"{printable(str(one.path))} and in {printable(str(other.path))}"
            are = "s are" if both > 1 else " is"
            notes.append(
                f"{both:,} document{are} in {names}: what one holds out, the other may teach."
                " Prepared together by one command, copies are left out."
            )
    return notes
