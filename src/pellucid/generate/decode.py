"""Decoding: ids in, one more id for each sequence, again and again, over a cache of keys and values.

    read the prompts ─▶ choose ─▶ tell ─▶ read what was chosen (and what is guessed to follow) ─▶ choose ─▶ ...

A sequence that has finished leaves the batch.

Guessing: what a sequence has written before is likely to come again, so a few ids are guessed (guessing.py) and read
together with the newest one, which costs little more than reading one. Each is kept only if it is the very id that
is then chosen from the logits before it: guessing changes how fast a text is written, and no letter of it.

Past the context: when a sequence fills the context, its newest context_length // 2 tokens are read anew, at positions
0, 1, 2, ..., and it goes on from there (`visible_from` says where that is). So there is always half a context of
memory, a position never leaves the table, and reading anew costs one step in context_length / 2.

In: a model, prompts as ids.  Out: ids.  Used by: stream, train.  Read next: naive.py.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile

from torch import Tensor

from pellucid.errors import GenerationError
from pellucid.generate.guessing import Guesser
from pellucid.generate.reading import Reading
from pellucid.nn import TransformerLM

Choose = Callable[[int, Tensor], int]
"""Given the number of a sequence and its logits (vocab), the id to write."""


def decode(
    model: TransformerLM,
    prompts: Sequence[Sequence[int]],
    choose: Choose,
    *,
    max_tokens: int,
    stop_ids: Collection[int] = (),
    has_stopped: Callable[[int], bool] = lambda _: False,
    reading: Reading | None = None,
    most_guessed: int = 3,
) -> Iterator[tuple[int, int]]:
    """Go on from prompts.

    Args:
        model: The model.
        prompts: Ids; from 1 to context_length each (see `fit_prompt`).
        choose: Says which id is written, given the number of the prompt and the logits.
        max_tokens: How many ids to write for each prompt, at most.
        stop_ids: Ids that end a sequence; they are told like any other, last.
        has_stopped: Asked after each id has been told: whether this sequence ends here.
        reading: What has been read of the prompts before, such as the earlier turns of a chat: what agrees with a
            prompt is not read again. It is left with what has been read by the end. Default: nothing.
        most_guessed: How many ids to guess at a time, at most; only where that cannot change what is written.

    Yields:
        (number of the prompt, id), each as soon as it is chosen.

    Raises:
        GenerationError: if a prompt is empty, longer than the context, or holds an id that the model does not know.
    """
    check_prompts(model, prompts)
    if max_tokens == 0 or not prompts:
        return
    reading = reading or Reading(model, len(prompts), max(map(len, prompts)) + max_tokens)
    sequences, numbers = [list(prompt) for prompt in prompts], list(range(len(prompts)))
    guessers = [Guesser(most_guessed if reading.program else 0) for _ in prompts]
    guesses: list[list[int]] = [[] for _ in prompts]
    logits = reading.read([_unread(reading, row, prompt) for row, prompt in enumerate(sequences)])
    while True:
        staying = []
        for row, number in enumerate(numbers):
            first = len(logits[row]) - 1 - len(guesses[row])
            for place, guess in enumerate([*guesses[row], None], first):
                token_id = choose(number, logits[row][place])
                sequences[row].append(token_id)
                yield number, token_id
                is_last = len(sequences[row]) - len(prompts[number]) >= max_tokens
                if token_id in stop_ids or has_stopped(number) or is_last:
                    break
                if token_id != guess:
                    staying.append(row)
                    break
            guessers[number].learn(len(guesses[row]), place - first)
            reading.cut(row, reading.cache.lengths[row] - len(guesses[row]) + place - first)
        if not staying:
            return
        guesses = [[] for _ in staying]
        if len(staying) < len(numbers):
            sequences, numbers = [sequences[row] for row in staying], [numbers[row] for row in staying]
            reading.keep(staying)
        make_room(reading, sequences)
        for row, (number, sequence) in enumerate(zip(numbers, sequences, strict=True)):
            left = min(len(prompts[number]) + max_tokens - len(sequence), reading.room(row))
            guesses[row] = guessers[number].guess(sequence, left - 1)
        logits = reading.read([[sequence[-1], *guess] for sequence, guess in zip(sequences, guesses, strict=True)])


def _unread(reading: Reading, row: int, prompt: Sequence[int]) -> Sequence[int]:
    """What of a prompt is to be read: not what stands in the cache already, but its last token in any case."""
    pairs = zip(reading.sequences[row], prompt[:-1], strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    reading.cut(row, same)
    return prompt[same:]


def make_room(reading: Reading, sequences: Sequence[Sequence[int]]) -> None:
    """For each sequence that fills the context: read what stays visible anew, all but its newest token."""
    context_length = reading.model.config.context_length
    kept: list[Sequence[int]] = [[] for _ in sequences]
    for row, sequence in enumerate(sequences):
        if reading.cache.lengths[row] >= context_length:
            reading.cut(row, 0)
            kept[row] = sequence[-kept_length(context_length) : -1]
    if any(kept):
        reading.read(kept)


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
