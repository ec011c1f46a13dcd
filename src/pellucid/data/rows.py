"""One token file as an endless sequence of rows, each epoch of them in an order and at a phase of its own.

    the ring of ids, cut into rows of context_length at a random phase, another in each epoch
    ──phase──┤ row 0 ├ row 1 ├ row 2 ├ … ┤ row R-1 ├──fewer ids than a row stay out this time──

In: `TokenFile`, a length, a seed.  Out: `Rows`.  Used by: batches.py.  Read next: batches.py.
"""

import numpy as np

from pellucid.data.pieces import printable
from pellucid.data.shuffle import mixed, shuffled
from pellucid.data.token_file import TokenFile
from pellucid.errors import DataError

PHASE, ORDER = 1, 2  # two streams of random numbers from one seed


class Rows:
    """The rows of one token file.

    Args:
        tokens: The file.
        context_length: Ids a row gives to the model; it is read with one more.
        seed: Chooses phases and orders.

    Raises:
        DataError: if the file has fewer than context_length + 1 ids.

    Attributes:
        per_epoch: How many rows an epoch has.
    """

    def __init__(self, tokens: TokenFile, *, context_length: int, seed: int) -> None:
        if len(tokens) < context_length + 1:
            raise DataError(
                f"at least {context_length + 1:,} tokens in the training split"
                f" (the context of {context_length:,} and the one that follows)",
                came=f"{len(tokens):,}",
                remedy=f"choose a context_length of at most {max(1, len(tokens) - 1):,}, or give a longer text",
            )
        self.tokens, self._context_length, self._seed = tokens, context_length, seed
        self._ring = len(tokens) - 1  # the last id is the first again
        self.per_epoch = self._ring // context_length

    def starts(self, numbers: np.ndarray) -> np.ndarray:
        """Say where in the file rows begin.

        Row r of epoch e begins at (phase_e + context_length · order_e(r)) mod (number of tokens - 1).

        Args:
            numbers: Rows, numbered through all epochs.

        Returns:
            One start for each.
        """
        epochs, places = np.divmod(numbers, self.per_epoch)
        starts = np.empty_like(numbers)
        for epoch in np.unique(epochs).tolist():
            inside = epochs == epoch
            rows = shuffled(places[inside], self.per_epoch, key=mixed(self._seed, ORDER, epoch))
            phase = mixed(self._seed, PHASE, epoch) % self._ring
            starts[inside] = (phase + self._context_length * rows) % self._ring
        return starts

    def read(self, row: np.ndarray, start: int) -> None:
        """Fill a row from the ring: to the file's last id, then on from the second, which follows the same id.

        Args:
            row: To be filled; its length says how far.
            start: As `starts` gave it.

        Raises:
            DataError: if the file holds an id that its header excludes.
        """
        end = min(start + len(row), len(self.tokens))
        row[: end - start] = self.tokens.read(start, end)
        if left := len(row) - (end - start):
            row[end - start :] = self.tokens.read(1, 1 + left)
        if (largest := int(row.max())) > self.tokens.header.largest_id:
            raise DataError(
                f"ids of at most {self.tokens.header.largest_id:,} in {printable(str(self.tokens.path))}",
                came=f"{largest:,}",
                remedy="the file is damaged: train on the text anew",
            )
