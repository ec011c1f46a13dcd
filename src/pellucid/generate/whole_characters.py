"""Whole characters: of tokens that are parts of characters, only those are chosen that go on to be text.

A byte-level vocabulary can spell every character, and nonsense too: half of one, then the beginning of another. Each
sequence walks through the states of text/utf8_states.py, one step for each id. The logits of ids that must not come are
-inf before anything else is done to them, so that temperature, top-k and top-p see only what may come, and what is
drawn has the model's own probabilities, divided by the sum of those allowed. The end of text comes only between
characters.

max_tokens may still fall inside a character. Then the ids that were written stay, and `whole_text` leaves the beginning
of that character out: the same seed with more tokens writes the same text and goes on from there.

In: a tokenizer, a way to choose.  Out: the same way to choose, among what may come; ids as text.
Used by: stream, train, whoever calls decode or generate_naively.  Read next: stream.py.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.generate.decode import Choose
from pellucid.text import TextTokenizer, bytes_begun, states_after_tokens
from pellucid.text.utf8_states import BETWEEN, NOWHERE

BROKEN = "\ufffd"
"""What bytes decode to that are no character, or not yet."""

LONGEST_BEGUN = 3
"""Bytes, and so ids, that a character can have begun with and still not be whole."""


class WholeCharacters:
    """A way to choose that lets another choose among the ids that keep a text UTF-8.

    It remembers where each sequence stands, so it belongs to one call of `decode`.

    Args:
        tokenizer: Says what bytes an id stands for.
        choose: Chooses, seeing -inf for every id that must not come.

    Example:
        >>> from pellucid.text import train_byte_pairs
        >>> tokenizer = train_byte_pairs(["a"], 257)
        >>> first, second = tokenizer.encode("é").tolist()
        >>> choose = WholeCharacters(tokenizer, lambda number, logits: int(logits.argmax()))
        >>> half = torch.zeros(257).index_fill(0, torch.tensor(first), 1.0)
        >>> choose(0, half) == first, choose(0, half) == first  # one half, then never the same half again
        (True, False)
    """

    def __init__(self, tokenizer: TextTokenizer, choose: Choose) -> None:
        self._choose = choose
        self._states_after = states_after_tokens(tokenizer)
        self._additions = additions(tokenizer)
        self._states: defaultdict[int, int] = defaultdict(lambda: BETWEEN)

    def __call__(self, number: int, logits: Float[Tensor, " vocab"]) -> int:
        """The id for a sequence; its state moves on."""
        state = self._states[number]
        token_id = self._choose(number, among(logits, self._additions[state]))
        self._states[number] = int(self._states_after[state, token_id])
        return token_id


def whole_characters(tokenizer: TextTokenizer, choose: Choose) -> Choose:
    """A way to choose that never breaks a character; the same one if this tokenizer's tokens cannot.

    Args:
        tokenizer: The model's.
        choose: As for `decode`; for `generate_naively`, give a function of the logits that passes on one number.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> def choose(number, logits): return 0
        >>> whole_characters(character_tokenizer(["中文"]), choose) is choose
        True
    """
    return WholeCharacters(tokenizer, choose) if states_after_tokens(tokenizer)[BETWEEN].any() else choose


def whole_text(tokenizer: TextTokenizer, token_ids: Sequence[int]) -> str:
    """The text of ids, without a character that the last of them only begin.

    Example:
        >>> from pellucid.text import train_byte_pairs
        >>> tokenizer = train_byte_pairs(["a"], 257)
        >>> whole_text(tokenizer, tokenizer.encode("ok😀")[:-1].tolist())
        'ok'
    """
    begun = bytes_begun(b"".join(map(tokenizer.token_bytes, token_ids[-LONGEST_BEGUN:])))
    if begun and tokenizer.kind == "other":  # there a run of single bytes is judged as a whole, so they go before
        return tokenizer.decode(token_ids[: -len(begun)])
    text = tokenizer.decode(token_ids)
    return text.removesuffix(BROKEN) if begun else text


def among(logits: Float[Tensor, " _"], addition: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
    """Logits, -inf where the addition is; ids past its end, which stand for nothing, are left out.

    If the model gives no id a chance that may come, they share it evenly. What is no number stays none.
    """
    logits = logits.to("cpu", torch.promote_types(logits.dtype, torch.float32))
    left = logits[: len(addition)] + addition
    return addition if left.max() == -torch.inf and (logits > -torch.inf).any() else left


@lru_cache(maxsize=8)
def additions(tokenizer: TextTokenizer) -> tuple[Float[Tensor, " vocab"], ...]:
    """For each state what is added to the logits: 0 for an id that may come, -inf for one that must not."""
    forbidden = torch.from_numpy((states_after_tokens(tokenizer) == NOWHERE).copy())
    return tuple(torch.zeros(forbidden.shape).masked_fill(forbidden, -torch.inf))
