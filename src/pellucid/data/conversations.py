"""Conversations → rows of one length: whole ones, several in a row where they fit, which do not see each other.

    row       ┌ conversation 7 ──────────┬ conversation 2 ─────┬ conversation 9 ┬ filled up ┐
    inputs    u u u a a a end u u a a end  u u a a a a a end …                  E E E E E E
    targets   – – a a a end – – a a end –  – a a a a a end – …                  – – – – – –     – is not scored
    positions 0 1 2 3 …                    0 1 2 …                              0 1 2 …

No conversation is cut, so every answer is learned after all that was said before it; and none is read after another,
as none will be when the model is used. Which share a row is decided once, longest first, each into the fullest row
that has room for it (best fit decreasing): the rows are then all but full. Their order is another in each epoch.

In: a `TokenFile` of chats, a length, a seed.  Out: `ConversationRows`, `ChatBatches`.  Used by: train.
Read next: windows.py.
"""

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from pellucid.data.shuffle import mixed, shuffled
from pellucid.data.token_file import TokenFile
from pellucid.data.windows import IGNORED
from pellucid.errors import ConfigError, DataError

ORDER = 4  # a stream of random numbers; 1 to 3 are in rows.py and batches.py
Row = tuple[Tensor, ...]


class ConversationRows:
    """The conversations of a token file, packed into rows.

    Args:
        tokens: Of chats.
        context_length: Tokens of a row.
        chosen: The numbers of the conversations; all of them by default.

    Raises:
        DataError: if one is longer than a row.

    Attributes:
        packed: For each row, the numbers of its conversations.

    Example:
        >>> packed([3, 5, 2, 8], room=8)
        [[3], [1, 0], [2]]
    """

    def __init__(self, tokens: TokenFile, context_length: int, chosen: np.ndarray | None = None) -> None:
        self.tokens, self.context_length = tokens, context_length
        starts = tokens.documents[:, 0]
        self._first, self._end = starts + 1, np.append(starts[1:], len(tokens) - 1)
        numbers = np.arange(len(starts)) if chosen is None else chosen
        lengths = (self._end - self._first)[numbers] - 1  # its last token predicts nothing
        if len(lengths) and lengths.max() > context_length:
            raise DataError(
                f"conversations of at most {context_length + 1:,} tokens",
                came=f"one of {lengths.max() + 1:,}",
                remedy="train on the chats anew",
            )
        self.packed = [numbers[row].tolist() for row in packed(lengths.tolist(), room=context_length)]

    def __len__(self) -> int:
        return len(self.packed)

    def rows(self, numbers: list[int]) -> tuple[Int64[Tensor, "row position"], ...]:
        """Some rows: inputs, targets, and for each token its conversation and its position there."""
        shape = (4, len(numbers), self.context_length)
        parts = np.zeros(shape, dtype=np.int64)
        for place, number in enumerate(numbers):
            self._fill(parts[:, place], self.packed[number])
        inputs, targets, document_ids, positions = torch.from_numpy(parts)
        return inputs, targets, document_ids, positions

    def _fill(self, row: np.ndarray, conversations: list[int]) -> None:
        inputs, targets, document_ids, positions = row
        inputs[:], targets[:] = self.tokens.header.end_of_text_id, IGNORED
        filled = 0
        for place, number in enumerate(conversations):
            first, end = int(self._first[number]), int(self._end[number])
            ids, is_scored = self.tokens.read(first, end).astype(np.int64), self.tokens.is_scored(first, end)
            here = slice(filled, filled + len(ids) - 1)
            inputs[here] = ids[:-1]
            targets[here] = np.where(is_scored[1:], ids[1:], IGNORED)
            document_ids[here], positions[here] = place, np.arange(len(ids) - 1)
            filled = here.stop
        document_ids[filled:], positions[filled:] = len(conversations), np.arange(len(inputs) - filled)


class ChatBatches:
    """Training batches of conversations, as a pure function of (seed, step).

    Args:
        tokens: The training conversations.
        context_length: Tokens of a row.
        batch_size: Rows in a batch, whoever computes it.
        seed: Chooses the order of rows.
    """

    def __init__(self, tokens: TokenFile, *, context_length: int, batch_size: int, seed: int) -> None:
        if context_length < 1 or batch_size < 1:
            raise ConfigError(
                "context_length and batch_size of at least 1",
                came=f"context_length={context_length}, batch_size={batch_size}",
                remedy="choose positive numbers",
            )
        self.tokens, self.context_length, self.batch_size, self.seed = tokens, context_length, batch_size, seed
        self._rows = ConversationRows(tokens, context_length)

    @property
    def rows_per_epoch(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def epochs_after(self, step: int) -> float:
        """How often every conversation has been read when `step` steps are done."""
        return step * self.batch_size / len(self._rows)

    def epochs_of_parts(self, step: int) -> tuple[float, ...]:
        """The same; there is one part."""
        return (self.epochs_after(step),)

    def at(self, step: int, *, rows: slice = slice(None)) -> tuple[Int64[Tensor, "row position"], ...]:
        """Give the batch of a step, or some rows of it.

        Args:
            step: Counted from 0.
            rows: Which rows of the global batch.

        Returns:
            Inputs, targets, documents and positions.
        """
        numbers = np.arange(step * self.batch_size, (step + 1) * self.batch_size)[rows]
        epochs, places = np.divmod(numbers, len(self._rows))
        for epoch in np.unique(epochs).tolist():
            inside = epochs == epoch
            places[inside] = shuffled(places[inside], len(self._rows), key=mixed(self.seed, ORDER, epoch))
        return self._rows.rows(places.tolist())


def packed(lengths: list[int], *, room: int) -> list[list[int]]:
    """Which things lie together in boxes of one size: best fit decreasing.

    Args:
        lengths: Of each, none above `room`.
        room: Of a box.

    Returns:
        For each box the numbers of what lies in it.

    Source: Johnson 1973; the boxes are at most 11/9 as many as the fewest that would do.
    """
    boxes: list[list[int]] = []
    with_room: list[list[int]] = [[] for _ in range(room + 1)]  # boxes by the room that is left
    is_there = np.zeros(room + 1, dtype=bool)
    for number in sorted(range(len(lengths)), key=lambda one: (-lengths[one], one)):
        left = lengths[number] + int(is_there[lengths[number] :].argmax())
        if left <= room and is_there[left]:
            box = with_room[left].pop()
            is_there[left] = bool(with_room[left])
        else:
            box, left = len(boxes), room
            boxes.append([])
        boxes[box].append(number)
        left -= lengths[number]
        with_room[left].append(box)
        is_there[left] = True
    return boxes
