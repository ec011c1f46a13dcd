"""Whole characters: of ids that stand for parts of characters, only those are chosen that go on to be text.

A byte-level vocabulary can spell every character, and nonsense too: half of one, then the beginning of another. Each
sequence walks through states, one step for each id (text/utf8_states.py says from where to where). The logits of ids
that must not come are -inf before anything else is done to them, so that temperature, top-k and top-p see only what may
come, and what is drawn has the model's own probabilities, divided by the sum of those allowed.

In: a table of states, a way to choose.  Out: the same way to choose, among what may come.
Used by: stream, which makes the table of a tokenizer.  Read next: stream.py.
"""

from collections import defaultdict

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from pellucid.generate.decode import Choose

BEGIN = 0
"""The state in which every sequence begins: between two characters."""


class CharacterStates:
    """Which ids may come in each state, ready to be added to logits; made once for a tokenizer.

    Args:
        states_after: For each state and id the state it leads to; a number past the last state: must not come.
    """

    def __init__(self, states_after: UInt8[np.ndarray, "row vocab"]) -> None:
        self.states_after = states_after
        forbidden = torch.from_numpy(states_after >= len(states_after))
        self.additions = torch.zeros(forbidden.shape).masked_fill(forbidden, -torch.inf).unbind()

    @property
    def are_needed(self) -> bool:
        """Whether there is an id that leads anywhere but to where it came from."""
        return bool((self.states_after[BEGIN] != BEGIN).any())


class WholeCharacters:
    """A way to choose that lets another choose among the ids that keep a text UTF-8.

    It remembers where each sequence stands, so it belongs to one call of `decode`.

    Args:
        states: The machine.
        choose: Chooses, seeing -inf for every id that must not come.

    Example:
        >>> states = CharacterStates(np.array([[0, 1, 2], [2, 2, 0]], dtype=np.uint8))  # a, half of é, the other half
        >>> choose = WholeCharacters(states, lambda number, logits: int(logits.argmax()))
        >>> [choose(0, torch.tensor([0.0, 9.0, 1.0])) for _ in range(4)]
        [1, 2, 1, 2]
    """

    def __init__(self, states: CharacterStates, choose: Choose) -> None:
        self._machine, self._choose = states, choose
        self._states: defaultdict[int, int] = defaultdict(lambda: BEGIN)

    def __call__(self, number: int, logits: Float[Tensor, " vocab"]) -> int:
        """The id for a sequence; its state moves on."""
        state = self._states[number]
        token_id = self._choose(number, among(logits, self._machine.additions[state]))
        self._states[number] = int(self._machine.states_after[state, token_id])
        return token_id


def among(logits: Float[Tensor, " _"], addition: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
    """Logits, -inf where the addition is; ids past its end, which stand for nothing, are left out.

    If the model gives no id a chance that may come, they share it evenly. What is no number stays none.

    Example:
        >>> among(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, -torch.inf]))
        tensor([1., -inf])
    """
    logits = logits.to("cpu", torch.promote_types(logits.dtype, torch.float32))
    left = logits[: len(addition)] + addition
    return addition if left.max() == -torch.inf and (logits > -torch.inf).any() else left
