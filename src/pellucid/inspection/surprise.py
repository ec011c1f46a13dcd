"""How surprised a model is by each token of a text: -log of the probability that it gave to what really came.

A model sees no more than its context, so a long text is read through a window that slides over it:

    ids         E t1 t2 t3 t4 t5 t6 t7      (context 4, stride 2; E, the end-of-text token, begins a document)
    1st window  E t1 t2 t3                  predicts t1 t2 t3 t4
    2nd window       t2 t3 t4 t5            predicts           – – t5 t6
    3rd window             t4 t5 t6         predicts                  – – t7

Each token is scored exactly once, and from at least context - stride tokens before it wherever there are so many. A
short stride asks the model what it can do, and costs context / stride times the work; a stride as long as the context
is what training reports: windows that do not overlap, in which every first token is predicted from one.

The head is applied to a few tokens at a time: never are all logits in memory, whatever the vocabulary.

In: a model, ids.  Out: `surprises`, nats for each token; `predictions`, what it expected instead.
Used by: scored_text.py, heat_map.py.  Read next: scored_text.py.

Source: the sliding window is Baevski and Auli, "Adaptive input representations" (2019), section 4.5.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.errors import ConfigError, DataError
from pellucid.inspection.reading import reading
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

TOKENS_AT_ONCE = 4096  # windows x context; more does not run faster on a CPU and needs more memory
LOGITS_AT_ONCE = 1 << 22  # numbers, 16 MB: they stay near the processor
LIKELIEST = 5  # what else a model expected: as many as one reads

Progress = Callable[[int], None]
"""Told how many tokens have been scored so far."""


@dataclass(frozen=True)
class Predictions:
    """What a model expected at each of some tokens.

    Attributes:
        nats: -log p of the token that came.
        ranks: Its place among all tokens, the likeliest being 1; equals share the best place.
        likeliest: The ids that the model thought likeliest, best first.
        likeliest_nats: -log p of these.
    """

    nats: np.ndarray
    ranks: np.ndarray
    likeliest: np.ndarray
    likeliest_nats: np.ndarray


def default_stride(config: ModelConfig) -> int:
    """Half the context: every token has at least half of what the model can use, for twice the least work."""
    return max(1, config.context_length // 2)


def surprises(
    model: TransformerLM,
    texts: Sequence[np.ndarray],
    *,
    stride: int | None = None,
    on_progress: Progress | None = None,
) -> list[np.ndarray]:
    """Surprise of every token but the first of each text, in nats.

    s_i = -log p(ids_i | ids_j … ids_{i-1}),  with ids_j the first token of the one window that scores i

    Args:
        model: In any mode; it is left in the same one, and no random stream is touched.
        texts: Ids, each text beginning with a token that is not scored: an end of text. A text is read without any
            other; many short ones are read side by side.
        stride: How far the window moves, 1 to the context. Default: half the context.
        on_progress: Hears how many tokens are done.

    Returns:
        For each text an array of float32, one shorter than its ids.

    Raises:
        ConfigError: for a stride that cannot be.
        DataError: for an id that the model does not have.

    Example:
        >>> model = TransformerLM(ModelConfig(vocab_size=10, d_model=64, num_heads=4, context_length=4))
        >>> [len(nats) for nats in surprises(model, [np.arange(8), np.arange(3), np.arange(1)])]
        [7, 2, 0]
    """
    lengths = [len(ids) for ids in texts]
    ends = np.cumsum([0, *lengths])
    nats = np.zeros(ends[-1], dtype=np.float32)
    windows = [_windows(length, model.config, stride) + start for start, length in zip(ends, lengths, strict=False)]
    done = 0
    windows = np.concatenate([_windows(0, model.config, stride), *windows])
    with reading(model):
        for places, logits, targets in _read(model, texts, windows):
            nats[places] = (logits.logsumexp(-1) - _of(logits, targets)).cpu().numpy()
            done += len(places)
            if on_progress:
                on_progress(done)
    return [nats[start + 1 : end] for start, end in itertools.pairwise(ends)]


def predictions(
    model: TransformerLM,
    ids: np.ndarray,
    *,
    first: int = 1,
    stop: int | None = None,
    stride: int | None = None,
    likeliest: int = LIKELIEST,
) -> Predictions:
    """What the model expected at some tokens of a text, read through the same windows as by `surprises`.

    Args:
        model: In any mode; it is left in the same one.
        ids: The text, as for `surprises`.
        first: Place of the first token asked about, 1 or more.
        stop: The place after the last. Default: the end.
        stride: As for `surprises`.
        likeliest: How many other tokens to name.

    Returns:
        An entry for each of the tokens `ids[first:stop]`.

    Raises:
        ConfigError: for a stride that cannot be.
        DataError: for an id that the model does not have.

    Example:
        >>> model = TransformerLM(ModelConfig(vocab_size=10, d_model=64, num_heads=4, context_length=4))
        >>> predictions(model, np.arange(8), first=5).likeliest.shape
        (3, 5)
    """
    stop = len(ids) if stop is None else stop
    likeliest = min(likeliest, _num_ids(model.config))
    nats, ranks = np.zeros(len(ids), dtype=np.float32), np.zeros(len(ids), dtype=np.int64)
    best = np.zeros((len(ids), likeliest), dtype=np.int64)
    best_nats = np.zeros((len(ids), likeliest), dtype=np.float32)
    windows = _windows(len(ids), model.config, stride)
    windows = windows[(windows[:, 1] < stop) & (windows[:, 2] > first)]
    with reading(model):
        for places, logits, targets in _read(model, [ids], windows):
            total, came = logits.logsumexp(-1), _of(logits, targets)
            values, found = logits.topk(likeliest, dim=-1)
            nats[places] = (total - came).cpu().numpy()
            ranks[places] = 1 + (logits > came[:, None]).sum(-1).cpu().numpy()
            best[places], best_nats[places] = found.cpu().numpy(), (total[:, None] - values).cpu().numpy()
    asked = slice(first, stop)
    return Predictions(nats[asked], ranks[asked], best[asked], best_nats[asked])


def _windows(length: int, config: ModelConfig, stride: int | None) -> np.ndarray:
    """The windows of a text, a row each: its first token, the first that it scores, the one after the last.

    Example:
        >>> config = ModelConfig(vocab_size=10, d_model=64, num_heads=4, context_length=4)
        >>> _windows(8, config, 2).tolist()
        [[0, 1, 5], [2, 5, 7], [4, 7, 8]]
    """
    context = config.context_length
    stride = default_stride(config) if stride is None else stride
    if not 1 <= stride <= context:
        raise ConfigError(
            f"a stride from 1 to {context}, the model's context",
            came=f"{stride}",
            remedy=f"choose {context} for windows that do not overlap, or fewer",
        )
    count = 1 + max(0, -(-(length - 1 - context) // stride)) if length > 1 else 0
    starts = np.arange(count) * stride
    stops = np.minimum(starts + context + 1, length)
    firsts = np.concatenate(([1], stops[:-1])) if count else stops
    return np.stack((starts, firsts, stops), axis=1)


def _read(
    model: TransformerLM, texts: Sequence[np.ndarray], windows: np.ndarray
) -> Iterator[tuple[np.ndarray, Float[Tensor, "position vocab"], Int[Tensor, " position"]]]:
    """Read windows of the texts laid end to end.

    Yields:
        Places of some tokens that are scored, the logits they were predicted with, and the tokens.
    """
    if not len(windows):
        return
    ids = np.concatenate(texts)
    _refuse_foreign_ids(ids, model.config)
    device = next(model.parameters()).device
    order = np.argsort(windows[:, 0] - windows[:, 2], kind="stable")  # the longest first: memory ends early, if at all
    tokens = max(1, LOGITS_AT_ONCE // model.config.vocab_size)
    while len(order):
        start, _, stop = windows[order[0]]
        width = int(stop - start) - 1
        now, order = np.split(order, [max(1, TOKENS_AT_ONCE // width)])
        starts, firsts, stops = windows[now].T
        places = starts[:, None] + np.arange(width)  # behind a short window stands what no token before it can see
        inputs = torch.from_numpy(ids[np.minimum(places, len(ids) - 1)].astype(np.int64))
        is_scored = (places + 1 >= firsts[:, None]) & (places + 1 < stops[:, None])
        scored = places[is_scored] + 1
        hidden = model.hidden_states(inputs.to(device))[torch.from_numpy(is_scored).to(device)]
        for begin in range(0, len(scored), tokens):
            here = scored[begin : begin + tokens]
            logits = model.logits(hidden[None, begin : begin + tokens])[0]
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            yield here, logits, torch.from_numpy(ids[here].astype(np.int64)).to(device)


def _of(logits: Float[Tensor, "position vocab"], targets: Int[Tensor, " position"]) -> Float[Tensor, " position"]:
    return logits.gather(-1, targets[:, None])[:, 0]


def _num_ids(config: ModelConfig) -> int:
    return config.vocab_size - config.num_unused_ids


def _refuse_foreign_ids(ids: np.ndarray, config: ModelConfig) -> None:
    num_ids = _num_ids(config)
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= num_ids:
        raise DataError(
            f"token ids from 0 to {num_ids - 1}, which the model has",
            came=f"id {high if high >= num_ids else low}",
            remedy="encode the text with the model's own tokenizer",
        )
