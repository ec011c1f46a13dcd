"""Six words as vectors: the example that every rung of the ladder is tried on.

In: nothing.  Out: a tensor.  Used by: the examples of this room, docs/ladder.md.  Read next: simple_attention_loop.py.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def worked_example() -> Float[Tensor, "position d_in"]:
    """The words "Your journey starts with one step", a row of three features each.

    The numbers are made up; what matters is that anyone can compute with them, and that the digits can be compared.

    Source: Raschka, Build a Large Language Model (From Scratch), 2024, section 3.3.

    Example:
        >>> worked_example().shape
        torch.Size([6, 3])
    """
    return torch.tensor(
        [
            [0.43, 0.15, 0.89],  # Your
            [0.55, 0.87, 0.66],  # journey
            [0.57, 0.85, 0.64],  # starts
            [0.22, 0.58, 0.33],  # with
            [0.77, 0.25, 0.10],  # one
            [0.05, 0.80, 0.55],  # step
        ]
    )
