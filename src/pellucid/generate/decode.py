"""Decoding: ids in, one more id for each sequence, again and again, over a cache of keys and values.

    prefill      read all prompts at once; logits for the token after each
    decode_one   read one new token of each sequence; logits for the token after it
    decode       the loop: choose, tell, read, until everyone has finished

Prompts of different lengths stand in one batch, padded on the right and masked by their lengths, so that each is read
as it would be alone. A sequence that has finished leaves the batch.

Past the context: when a sequence fills the context, its newest context_length // 2 tokens are read anew, at positions
0, 1, 2, ..., and it goes on from there (`visible_from` says where that is). So there is always half a context of
memory, a position never leaves the table, and reading anew costs one step in context_length / 2.

In: a model, prompts as ids.  Out: ids.  Used by: stream, train.  Read next: naive.py.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.errors import GenerationError
from pellucid.nn import KVCache, TransformerLM

Choose = Callable[[int, Tensor], int]
"""Given the number of a sequence and its logits (vocab), the id to write."""


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
    lengths = [len(prompt) for prompt in prompts]
    padded = torch.zeros(len(prompts), max(lengths), dtype=torch.int64)  # id 0: masked, whatever it means
    for row, prompt in enumerate(prompts):
        padded[row, : len(prompt)] = torch.as_tensor(prompt)
    ragged = lengths if len(set(lengths)) > 1 else None
    with evaluating(model):
        logits = model(padded.to(device_of(model)), cache=cache, lengths=ragged, last_only=True)
    cache.advance(lengths)
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
    with evaluating(model):
        logits = model(torch.tensor(token_ids, device=device_of(model))[:, None], cache=cache)
    cache.advance(1)
    return logits[:, 0]


def decode(
    model: TransformerLM,
    prompts: Sequence[Sequence[int]],
    choose: Choose,
    *,
    max_tokens: int,
    stop_ids: Collection[int] = (),
    has_stopped: Callable[[int], bool] = lambda _: False,
) -> Iterator[tuple[int, int]]:
    """Go on from prompts.

    Args:
        model: The model.
        prompts: Ids; from 1 to context_length each (see `fit_prompt`).
        choose: Says which id is written, given the number of the prompt and the logits.
        max_tokens: How many ids to write for each prompt, at most.
        stop_ids: Ids that end a sequence; they are told like any other, last.
        has_stopped: Asked after each id has been told: whether this sequence ends here.

    Yields:
        (number of the prompt, id), each as soon as it is chosen.

    Raises:
        GenerationError: if a prompt is empty, longer than the context, or holds an id that the model does not know.
    """
    check_prompts(model, prompts)
    sequences, numbers = [list(prompt) for prompt in prompts], list(range(len(prompts)))
    if max_tokens == 0 or not prompts:
        return
    cache = new_cache(model, len(prompts), max(map(len, prompts)) + max_tokens)
    logits = prefill(model, sequences, cache)
    for written in range(1, max_tokens + 1):
        staying = []
        for row, number in enumerate(numbers):
            token_id = choose(number, logits[row])
            sequences[row].append(token_id)
            yield number, token_id
            if token_id not in stop_ids and not has_stopped(number):
                staying.append(row)
        if written == max_tokens or not staying:
            return
        if len(staying) < len(numbers):
            sequences, numbers = [sequences[row] for row in staying], [numbers[row] for row in staying]
            keep_rows(cache, staying)
        make_room(model, sequences, cache)
        logits = decode_one(model, [sequence[-1] for sequence in sequences], cache)


def make_room(model: TransformerLM, sequences: Sequence[Sequence[int]], cache: KVCache) -> None:
    """For each sequence that fills the context: read what stays visible anew, all but its newest token."""
    for row, sequence in enumerate(sequences):
        if cache.lengths[row] < model.config.context_length:
            continue
        cache.lengths[row] = 0
        kept = sequence[-kept_length(model.config.context_length) : -1]
        if kept:
            alone = new_cache(model, 1, len(kept))
            prefill(model, [kept], alone)
            for layer, read in zip(cache.layers, alone.layers, strict=True):
                layer.keys[row, :, : len(kept)], layer.values[row, :, : len(kept)] = read.keys[0], read.values[0]
            cache.lengths[row] = len(kept)


def kept_length(context_length: int) -> int:
    """How many of the newest tokens stay visible when the context is full."""
    return max(1, context_length // 2)


def visible_from(context_length: int, length: int) -> int:
    """Which token is the first that the one after `length` tokens can see: the rule of `decode`, as a formula.

    Example:
        >>> [visible_from(4, length) for length in range(3, 11)]
        [0, 0, 3, 3, 3, 6, 6, 6]
    """
    if length <= context_length:
        return 0
    kept = kept_length(context_length)
    return length - kept - (length - context_length - 1) % (context_length - kept + 1)


def fit_prompt(prompt: Sequence[int], context_length: int, truncate: bool) -> tuple[list[int], int]:
    """The prompt as it can be read, and how many of its first ids were dropped for that.

    Args:
        prompt: Ids.
        context_length: The model's.
        truncate: Whether dropping is allowed.

    Raises:
        GenerationError: naming both numbers, if the prompt is too long and dropping is not allowed.
    """
    dropped = max(0, len(prompt) - context_length)
    if dropped and not truncate:
        raise GenerationError(
            f"a prompt of at most {context_length} tokens (the model's context_length)",
            came=f"{len(prompt)} tokens",
            remedy="shorten it, or allow its beginning to be dropped (truncate_prompt, --truncate-prompt)",
        )
    return list(prompt[dropped:]), dropped


def check_prompts(model: TransformerLM, prompts: Sequence[Sequence[int]]) -> None:
    """Refuse what would be an index error in the middle of the model; on an accelerator that ends the process."""
    known = model.config.vocab_size - model.config.num_unused_ids
    for prompt in prompts:
        fit_prompt(prompt, model.config.context_length, truncate=False)
        if len(prompt) == 0:
            raise GenerationError("a prompt of one id or more", came="none", remedy="begin with the end-of-text id")
        if min(prompt) < 0 or max(prompt) >= known:
            came = f"{min(prompt) if min(prompt) < 0 else max(prompt)}"
            raise GenerationError(f"ids from 0 to {known - 1}", came=came, remedy="use the model's own tokenizer")


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
