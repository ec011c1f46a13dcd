"""Reading: tokens into the model, over a cache of keys and values, and out come the logits behind them.

    prefill      read whole prompts at once, through the model's forward pass
    decode_one   read one new token of each sequence, the same way
    Reading      sequences being read: what is new of each goes in, and the fastest way is taken

A `Reading` reads few new tokens with the program (program.py), where there is one, and long prompts with a forward
pass, each prompt by itself. Both ways sum up in an order that depends on the one sequence alone: so a sequence in
company gets, bit for bit, the logits that it gets alone. Without a program, prompts of different lengths stand in one
batch, padded on the right and masked by their lengths; then a batch may round otherwise than a single row does, and
`sampling.NEAR_TIE` is the rule for what is then too close to call.

In: a model, ids.  Out: logits.  Used by: decode.  Read next: decode.py.
"""

from collections.abc import Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.errors import ShapeError
from pellucid.float32 import fast_float32
from pellucid.generate.program import MOST_TOKENS, Program
from pellucid.nn import KVCache, TransformerLM


@torch.no_grad()
def prefill(model: TransformerLM, prompts: Sequence[Sequence[int]], cache: KVCache) -> Float[Tensor, "batch vocab"]:
    """Read whole prompts into an empty cache.

    Args:
        model: The model.
        prompts: Ids, at least one each.
        cache: Is filled and advanced.

    Returns:
        Logits for the token after each prompt.
    """
    logits = _together(model, prompts, cache, last_only=True)
    cache.advance([len(prompt) for prompt in prompts])
    return logits[:, 0]


@torch.no_grad()
def decode_one(model: TransformerLM, token_ids: Sequence[int], cache: KVCache) -> Float[Tensor, "batch vocab"]:
    """Read one new token of each sequence.

    Args:
        model: The model.
        token_ids: The newest id of each sequence.
        cache: What came before; is advanced.

    Returns:
        Logits for the token after it.
    """
    logits = _together(model, [[token_id] for token_id in token_ids], cache)
    cache.advance(1)
    return logits[:, 0]


@torch.no_grad()
def _together(
    model: TransformerLM, tokens: Sequence[Sequence[int]], cache: KVCache, last_only: bool = False
) -> Float[Tensor, "batch query vocab"]:
    """One forward pass over what is new of all sequences, padded on the right; the cache is not advanced."""
    lengths = [len(new) for new in tokens]
    padded = torch.zeros(len(tokens), max(lengths), dtype=torch.int64)  # id 0: masked, whatever it means
    for row, new in enumerate(tokens):
        padded[row, : len(new)] = torch.as_tensor(new)
    ragged = lengths if len(set(lengths)) > 1 else None
    with evaluating(model), fast_float32():
        return model(padded.to(device_of(model)), cache=cache, lengths=ragged, last_only=last_only)


class Reading:
    """Sequences being read by a model.

    Args:
        model: The model.
        num_sequences: How many, side by side.
        num_positions: How long they will be; they may become longer, up to the model's context.
        through_model: Read with forward passes alone, as if there were no program.

    Example:
        >>> from pellucid.model_config import ModelConfig
        >>> model = TransformerLM(ModelConfig(vocab_size=10, d_model=64, num_heads=4))
        >>> reading = Reading(model, 2, 8)
        >>> [len(logits) for logits in reading.read([[1, 2, 3], [4]])]
        [3, 1]
        >>> reading.sequences
        [[1, 2, 3], [4]]
    """

    def __init__(
        self, model: TransformerLM, num_sequences: int, num_positions: int, *, through_model: bool = False
    ) -> None:
        self.model = model
        self.cache = new_cache(model, num_sequences, num_positions)
        self.sequences: list[list[int]] = [[] for _ in range(num_sequences)]
        """The ids that have been read."""
        self.program = Program(model) if not through_model and Program.can_run(model) else None

    def read(self, tokens: Sequence[Sequence[int]]) -> list[Float[Tensor, "query vocab"]]:
        """Read what is new of each sequence, maybe nothing; there must be room for it.

        Args:
            tokens: The new ids of each sequence.

        Returns:
            For each sequence the logits after each of its new ids, or, if these are many, after the last alone.
        """
        self._make_room(max(length + len(new) for length, new in zip(self.cache.lengths, tokens, strict=True)))
        logits = self._through_program(self.program, tokens) if self.program else self._through_model(tokens)
        self.cache.advance([len(new) for new in tokens])
        for sequence, new in zip(self.sequences, tokens, strict=True):
            sequence += new
        return logits

    def room(self, row: int) -> int:
        """How many more ids of a sequence the model's context has room for."""
        return self.model.config.context_length - self.cache.lengths[row]

    def cut(self, row: int, length: int) -> None:
        """Forget all of a sequence but its first `length` ids."""
        del self.sequences[row][length:]
        self.cache.lengths[row] = length

    def keep(self, rows: Sequence[int]) -> None:
        """Let go of all sequences but these."""
        self.sequences = [self.sequences[row] for row in rows]
        keep_rows(self.cache, rows)

    def _make_room(self, num_positions: int) -> None:
        """Room for as many positions, for twice as many as there were at least, so that it is seldom made."""
        old, most = self.cache, self.model.config.context_length
        if num_positions <= old.capacity:
            return
        if num_positions > most:
            came, remedy = str(num_positions), "cut the sequence, or read a shorter window anew"
            raise ShapeError(f"at most context_length={most} positions of a sequence", came=came, remedy=remedy)
        new = new_cache(self.model, len(self.sequences), max(num_positions, 2 * old.capacity))
        new.lengths[:] = old.lengths
        for layer, before in zip(new.layers, old.layers, strict=True):
            layer.keys[:, :, : old.capacity], layer.values[:, :, : old.capacity] = before.keys, before.values
        self.cache = new  # last: whoever interrupts this finds the old one, and may go on with it

    @torch.no_grad()
    def _through_program(self, program: Program, tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        few = [(row, place) for row, new in enumerate(tokens) if len(new) <= MOST_TOKENS for place in range(len(new))]
        logits = [torch.empty(0, self.model.config.vocab_size)]
        for start in range(0, len(few), MOST_TOKENS):
            rows, offsets = zip(*few[start : start + MOST_TOKENS], strict=True)
            ids = [tokens[row][offset] for row, offset in zip(rows, offsets, strict=True)]
            places = [self.cache.lengths[row] + offset for row, offset in zip(rows, offsets, strict=True)]
            logits.append(program.step(ids, rows, places, self.cache))
        read = iter(torch.cat(logits).split([len(new) for new in tokens if len(new) <= MOST_TOKENS]))
        return [next(read) if len(new) <= MOST_TOKENS else self._alone(row, new) for row, new in enumerate(tokens)]

    def _alone(self, row: int, new: Sequence[int]) -> Tensor:
        """Read tokens of one sequence; its row of the cache is advanced by whoever called."""
        if not new:
            return torch.empty(0, self.model.config.vocab_size)
        return _together(self.model, [new], self.cache.only(row), last_only=len(new) > MOST_TOKENS)[0]

    def _through_model(self, tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        """All together, if they are new, or equally many of each; else each alone."""
        lengths = [len(new) for new in tokens]
        if min(lengths) == 0 or (len(set(lengths)) > 1 and any(self.cache.lengths)):
            return [self._alone(row, new) for row, new in enumerate(tokens)]
        many = max(lengths) > MOST_TOKENS
        logits = _together(self.model, tokens, self.cache, last_only=many)
        return [row if many else row[:length] for row, length in zip(logits, lengths, strict=True)]


def new_cache(model: TransformerLM, batch_size: int, num_positions: int) -> KVCache:
    """An empty cache for as many positions, but no more than the model's context."""
    capacity = min(model.config.context_length, num_positions)
    return KVCache(model.config, batch_size, capacity, device_of(model), next(model.parameters()).dtype)


def keep_rows(cache: KVCache, rows: Sequence[int]) -> None:
    """Let go of all sequences but these."""
    cache.lengths[:] = [cache.lengths[row] for row in rows]
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[list(rows)], layer.values[list(rows)]


def device_of(model: TransformerLM) -> torch.device:
    """Where the model is."""
    return next(model.parameters()).device


@contextmanager
def evaluating(model: TransformerLM):
    """The model without dropout while the block lasts; a model in training goes back to it."""
    was_training = model.training
    if was_training:
        model.eval()
    try:
        yield
    finally:
        if was_training:
            model.train()
