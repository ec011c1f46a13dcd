"""Token file → training batches, as a pure function of (seed, step).

    the ring of ids, cut into rows of context_length at a random phase, another in each epoch
    ──phase──┤ row 0 ├ row 1 ├ row 2 ├ … ┤ row R-1 ├──fewer ids than a row stay out this time──

The rows of all epochs stand in one endless sequence, each epoch in an order of its own, and step s takes the next
batch_size of them: a place in the data is one integer, every row comes once an epoch, and no batch is cut short.
Ranks, and micro-batches, take slices of the same global batch. A row's targets are its ids one place on.

In: `TokenFile`, sizes, a seed.  Out: `Batches`.  Used by: train.  Read next: windows.py.
"""

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from pellucid.data.pieces import printable
from pellucid.data.shuffle import mixed, shuffled
from pellucid.data.token_file import TokenFile
from pellucid.errors import ConfigError, DataError

PHASE, ORDER = 1, 2  # two streams of random numbers from one seed
STEPS_TOGETHER = 64  # an order is looked up for so many steps at once: 15 µs a step instead of 0.4 ms


class Batches:
    """Training batches of one token file.

    Args:
        tokens: The training split.
        context_length: Ids a row gives to the model.
        batch_size: Rows in a batch: the global one, whoever computes it.
        seed: Chooses phases and orders, nothing else.

    Raises:
        DataError: if the file has fewer than context_length + 1 ids.
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

    def __init__(self, tokens: TokenFile, *, context_length: int, batch_size: int, seed: int) -> None:
        if context_length < 1 or batch_size < 1:
            raise ConfigError(
                "context_length and batch_size of at least 1",
                came=f"context_length={context_length}, batch_size={batch_size}",
                remedy="choose positive numbers",
            )
        if len(tokens) < context_length + 1:
            raise DataError(
                f"at least {context_length + 1:,} tokens in the training split"
                f" (the context of {context_length:,} and the one that follows)",
                came=f"{len(tokens):,}",
                remedy=f"choose a context_length of at most {max(1, len(tokens) - 1):,}, or give a longer text",
            )
        self.tokens, self.context_length, self.batch_size, self.seed = tokens, context_length, batch_size, seed
        self._ring = len(tokens) - 1  # the last id is the first again
        self.rows_per_epoch = self._ring // context_length
        self._block = -1
        self._block_starts: np.ndarray = np.empty((0, batch_size))

    @property
    def steps_per_epoch(self) -> float:
        """Steps that read every row once; a batch may straddle two epochs."""
        return self.rows_per_epoch / self.batch_size

    def epochs_after(self, step: int) -> float:
        """How often the text has been read when `step` steps are done.

        Args:
            step: Number of steps.

        Returns:
            Epochs, with a fraction.
        """
        return step * self.batch_size / self.rows_per_epoch

    def starts(self, step: int) -> np.ndarray:
        """Say where in the file the rows of a batch begin.

        Row r of epoch e begins at (phase_e + context_length · order_e(r)) mod (number of tokens - 1).

        Args:
            step: Counted from 0.

        Returns:
            One start for each row of the global batch.
        """
        block = step // STEPS_TOGETHER
        if block != self._block:
            first = block * STEPS_TOGETHER * self.batch_size
            rows = np.arange(first, first + STEPS_TOGETHER * self.batch_size)
            self._block, self._block_starts = block, self._starts_of(rows).reshape(STEPS_TOGETHER, self.batch_size)
        return self._block_starts[step % STEPS_TOGETHER]

    def _starts_of(self, numbers: np.ndarray) -> np.ndarray:
        """Where rows begin that are numbered through all epochs."""
        epochs, places = np.divmod(numbers, self.rows_per_epoch)
        starts = np.empty_like(numbers)
        for epoch in np.unique(epochs).tolist():
            inside = epochs == epoch
            rows = shuffled(places[inside], self.rows_per_epoch, key=mixed(self.seed, ORDER, epoch))
            phase = mixed(self.seed, PHASE, epoch) % self._ring
            starts[inside] = (phase + self.context_length * rows) % self._ring
        return starts

    def at(
        self, step: int, *, rows: slice = slice(None)
    ) -> tuple[Int64[Tensor, "row position"], Int64[Tensor, "row position"]]:
        """Give the batch of a step, or some rows of it.

        Args:
            step: Counted from 0.
            rows: Which rows of the global batch: a rank's or a micro-batch's share.

        Returns:
            Inputs and targets, the targets one place on.

        Raises:
            DataError: if the file holds an id that its header excludes.
        """
        starts = self.starts(step)[rows].tolist()
        ids = np.empty((len(starts), self.context_length + 1), dtype=np.int64)
        for row, start in enumerate(starts):
            self._fill(ids[row], start)
        if ids.size and (largest := int(ids.max())) > self.tokens.header.largest_id:
            raise DataError(
                f"ids of at most {self.tokens.header.largest_id:,} in {printable(str(self.tokens.path))}",
                came=f"{largest:,}",
                remedy="the file is damaged: train on the text anew",
            )
        batch = torch.from_numpy(ids)
        return batch[:, :-1].contiguous(), batch[:, 1:].contiguous()

    def _fill(self, row: np.ndarray, start: int) -> None:
        """Read one row from the ring: to the file's last id, then on from the second, which follows the same id."""
        end = min(start + len(row), len(self.tokens))
        row[: end - start] = self.tokens.read(start, end)
        if left := len(row) - (end - start):
            row[end - start :] = self.tokens.read(1, 1 + left)
