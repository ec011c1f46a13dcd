"""Token files → training batches, as a pure function of (seed, step).

The rows of all epochs stand in one endless sequence, each epoch in an order of its own (rows.py), of several texts in
stated proportions (mixture.py), and step s takes the next batch_size of them: a place in the data is one integer, every
row of a text comes once in its epoch, and no batch is cut short. Ranks, and micro-batches, take slices of the same
global batch. A row's targets are its ids one place on.

Rows run across documents, which are packed without a gap. With `mask_documents` a batch also says to which document
each token belongs, and its position there, for attention that keeps documents apart:

    inputs         d d d E x x x E y        E begins a document, and is predicted at the end of the one before
    document_ids   0 0 0 1 1 1 1 2 2
    positions      0 1 2 0 1 2 3 0 1        a document that the row's start cuts begins at 0 there

In: `TokenFile`s, sizes, a seed.  Out: `Batches`.  Used by: train.  Read next: windows.py.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from pellucid.data.mixture import Mixture
from pellucid.data.rows import Rows
from pellucid.data.shuffle import mixed
from pellucid.data.token_file import TokenFile
from pellucid.errors import ConfigError

PART = 3  # a stream of random numbers for each part of a mixture; 1 and 2 are in rows.py
STEPS_TOGETHER = 64  # an order is looked up for so many steps at once: 15 µs a step instead of 0.4 ms


class Batches:
    """Training batches of one token file, or of several in stated proportions.

    Args:
        tokens: The training split; or those of several texts with one tokenizer.
        context_length: Ids a row gives to the model.
        batch_size: Rows in a batch: the global one, whoever computes it.
        seed: Chooses phases and orders, nothing else.
        weights: Of several files, the proportions of their rows; None for as long as they are.
        mask_documents: Whether `at` also gives documents and positions.

    Raises:
        DataError: if a file has fewer than context_length + 1 ids.
        ConfigError: if a size is not positive.

    Example:
        >>> import tempfile, pathlib
        >>> from pellucid.data.token_writer import TokenWriter
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer, path = character_tokenizer(["banana"]), pathlib.Path(tempfile.mkdtemp(), "x.tokens")
        >>> with TokenWriter(path, tokenizer, text="") as writer:
        ...     writer.begin_document(tenth=0)
        ...     writer.add(tokenizer.encode("banana"), characters=6)
        >>> batches = Batches(TokenFile.open(path), context_length=3, batch_size=2, seed=0)
        >>> inputs, targets = batches.at(step=0)
        >>> inputs.shape, bool((inputs[:, 1:] == targets[:, :-1]).all()), batches.rows_per_epoch
        (torch.Size([2, 3]), True, 2)
    """

    def __init__(
        self,
        tokens: TokenFile | Sequence[TokenFile],
        *,
        context_length: int,
        batch_size: int,
        seed: int,
        weights: Sequence[Fraction] | None = None,
        mask_documents: bool = False,
    ) -> None:
        if context_length < 1 or batch_size < 1:
            raise ConfigError(
                "context_length and batch_size of at least 1",
                came=f"context_length={context_length}, batch_size={batch_size}",
                remedy="choose positive numbers",
            )
        files = (tokens,) if isinstance(tokens, TokenFile) else tuple(tokens)
        self.context_length, self.batch_size, self.seed = context_length, batch_size, seed
        self.mask_documents = mask_documents
        seeds = [seed] if len(files) == 1 else [mixed(seed, PART, part) for part in range(len(files))]
        self._parts = [
            Rows(file, context_length=context_length, seed=own) for file, own in zip(files, seeds, strict=True)
        ]
        self._mixture = Mixture(weights or [Fraction(part.per_epoch) for part in self._parts])
        self._block = -1
        self._block_places: np.ndarray = np.empty((0, 2, batch_size))

    @property
    def tokens(self) -> TokenFile:
        """The file, or the first of several."""
        return self._parts[0].tokens

    @property
    def rows_per_epoch(self) -> int:
        """Rows of all parts that come once in an epoch of theirs."""
        return sum(part.per_epoch for part in self._parts)

    @property
    def steps_per_epoch(self) -> float:
        """Steps that read as many rows as there are; a batch may straddle two epochs."""
        return 1 / self.epochs_after(1)

    def epochs_after(self, step: int) -> float:
        """How often the text has been read when `step` steps are done.

        Of a mixture, how often on average the rows that come have been read.

        Args:
            step: Number of steps.

        Returns:
            Epochs, with a fraction.
        """
        if len(self._parts) == 1:
            return step * self.batch_size / self.rows_per_epoch
        pairs = zip(self._mixture.weights, self.epochs_of_parts(step), strict=True)
        return sum(float(weight) * epochs for weight, epochs in pairs)

    def epochs_of_parts(self, step: int) -> tuple[float, ...]:
        """How often each part has been read when `step` steps are done.

        Args:
            step: Number of steps.

        Returns:
            Epochs of each, with a fraction.
        """
        rows = step * self.batch_size
        pairs = zip(self._mixture.weights, self._parts, strict=True)
        return tuple(rows * float(weight) / part.per_epoch for weight, part in pairs)

    def starts(self, step: int) -> np.ndarray:
        """Say where in their files the rows of a batch begin.

        Args:
            step: Counted from 0.

        Returns:
            One start for each row of the global batch.
        """
        return self._places(step)[1]

    def parts(self, step: int) -> np.ndarray:
        """Say from which file the rows of a batch come.

        Args:
            step: Counted from 0.

        Returns:
            The place of its file, for each row of the global batch.
        """
        return self._places(step)[0]

    def _places(self, step: int) -> np.ndarray:
        """Part and start of each row."""
        block = step // STEPS_TOGETHER
        if block != self._block:
            first = block * STEPS_TOGETHER * self.batch_size
            rows = np.arange(first, first + STEPS_TOGETHER * self.batch_size)
            parts, numbers = self._mixture.places(rows)
            starts = np.empty_like(rows)
            for place, part in enumerate(self._parts):
                starts[parts == place] = part.starts(numbers[parts == place])
            places = np.stack([parts, starts]).reshape(2, STEPS_TOGETHER, self.batch_size)
            self._block, self._block_places = block, places.swapaxes(0, 1)
        return self._block_places[step % STEPS_TOGETHER]

    def at(self, step: int, *, rows: slice = slice(None)) -> tuple[Int64[Tensor, "row position"], ...]:
        """Give the batch of a step, or some rows of it.

        Args:
            step: Counted from 0.
            rows: Which rows of the global batch: a rank's or a micro-batch's share.

        Returns:
            Inputs and targets, the targets one place on; with `mask_documents` also document_ids and positions.

        Raises:
            DataError: if the file holds an id that its header excludes.
        """
        parts, starts = (places[rows].tolist() for places in self._places(step))
        ids = np.empty((len(starts), self.context_length + 1), dtype=np.int64)
        for row, part, start in zip(ids, parts, starts, strict=True):
            self._parts[part].read(row, start)
        batch = torch.from_numpy(ids)
        pair = batch[:, :-1].contiguous(), batch[:, 1:].contiguous()
        if not self.mask_documents:
            return pair
        return *pair, *documents_of(ids[:, :-1], self.tokens.header.end_of_text_id)


def documents_of(
    ids: Int64[np.ndarray, "row position"], end_of_text_id: int
) -> tuple[Int64[Tensor, "row position"], Int64[Tensor, "row position"]]:
    """Say to which document of its row each token belongs, and its position there.

    Args:
        ids: Rows of tokens.
        end_of_text_id: The token that begins a document.

    Returns:
        Documents, numbered in each row from 0 (from 1, if the row begins with one), and positions from 0.

    Example:
        >>> documents, positions = documents_of(np.array([[5, 6, 9, 7, 9, 8]]), end_of_text_id=9)
        >>> documents.tolist(), positions.tolist()
        ([[0, 0, 1, 1, 2, 2]], [[0, 1, 0, 1, 0, 1]])
    """
    begins = ids == end_of_text_id
    places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    last_begin = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    return torch.from_numpy(np.cumsum(begins, axis=1)), torch.from_numpy(places - last_begin)
