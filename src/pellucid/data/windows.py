"""A held-out passage → evaluation windows: every token scored once, each row as long as the context.

    passage   E t1 t2 t3 │ t4 t5 t6 │ t7          (context 3; E is the end-of-text token)
    inputs    E t1 t2    │ t3 t4 t5 │ t6 E  E
    targets   t1 t2 t3   │ t4 t5 t6 │ t7 –  –     – is not scored

The windows do not overlap: a window's first target is predicted from one token, its last from the whole context. What
stands for an end of text inside a passage is not scored, as no yardstick is asked for it either.

In: ids of one passage.  Out: `windows`, `IGNORED`.  Used by: train, evaluation.  Read next: the room yardsticks.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

IGNORED = -100  # the target that no loss counts, torch's own


def windows(
    ids: np.ndarray, *, context_length: int, batch_size: int, end_of_text_id: int, start_id: int | None = None
) -> Iterator[tuple[Int64[Tensor, "row position"], Int64[Tensor, "row position"]]]:
    """Cut a passage into batches of windows, all of one shape.

    Args:
        ids: The passage, beginning with the end-of-text token.
        context_length: Length of a window.
        batch_size: Windows in a batch; the last is filled up with rows that are not scored.
        end_of_text_id: Fills inputs, and is never scored.
        start_id: What stands before each text's first token, if that is another: then a passage begins with it, and
            it is never scored either.

    Yields:
        Inputs, and targets in which `IGNORED` is not scored.

    Example:
        >>> batches = windows(np.array([9, 1, 2, 3, 4]), context_length=3, batch_size=2, end_of_text_id=9)
        >>> [targets.tolist() for _, targets in batches]
        [[[1, 2, 3], [4, -100, -100]]]
    """
    room = context_length * batch_size
    unscored = [end_of_text_id, end_of_text_id if start_id is None else start_id]
    if len(ids) > 1 and ids[1] != end_of_text_id and ids[1] == start_id:
        ids = ids[1:]  # as the model is used: a text begins with that token, and nothing stands before it
    for start in range(0, len(ids) - 1, room):
        stretch = np.asarray(ids[start : start + room + 1], dtype=np.int64)
        inputs = np.full(room, end_of_text_id)
        targets = np.full(room, IGNORED)
        inputs[: len(stretch) - 1] = stretch[:-1]
        targets[: len(stretch) - 1] = np.where(np.isin(stretch[1:], unscored), IGNORED, stretch[1:])
        shape = (batch_size, context_length)
        yield torch.from_numpy(inputs.reshape(shape)), torch.from_numpy(targets.reshape(shape))
