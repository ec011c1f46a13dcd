"""Sampling: from the logits of one place to the id that is written there. Each function does one thing.

    logits ─▶ with_temperature ─▶ keep_top_k ─▶ keep_top_p ─▶ keep_min_p ─▶ draw ─▶ id

in this order, each on what the one before has left. A token that is not kept gets the logit -inf. At every step the
likeliest token stays. Everything is computed in float32 or wider, on the CPU, whatever the model runs in.

In: logits, a `GenerationConfig`, a random stream.  Out: an id.  Used by: stream, decode's callers.
Read next: decode.py.
"""

import secrets

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.errors import GenerationError
from pellucid.generation_config import GenerationConfig

GREEDY_BELOW = 1e-3
"""A temperature up to this one is 0: a lead of 0.02 in the logits is then already a probability of 1 - 2e-9."""

NEAR_TIE = 1e-5
"""Logits this close, relative to the largest, are equal: a batch rounds otherwise than a row alone (about 1e-6)."""

ROUNDING = 1e-6
"""What a sum of probabilities may be short of top_p: float32 cannot write 0.5 + 0.3 as 0.8."""


def sample(logits: Float[Tensor, " vocab"], config: GenerationConfig, stream: torch.Generator) -> int:
    """Choose an id as `config` says; takes one number from the stream, or none if the likeliest is wanted.

    Raises:
        GenerationError: if the logits hold NaN: the weights do not make a model.

    Example:
        >>> sample(torch.tensor([0.0, 3.0, 1.0]), GenerationConfig(temperature=0.0), torch.Generator())
        1
    """
    logits = logits.to("cpu", torch.promote_types(logits.dtype, torch.float32))
    if not (logits < torch.inf).all() or not (logits > -torch.inf).any():
        raise GenerationError(
            "scores that are numbers",
            came="NaN or infinity",
            remedy="use another checkpoint: this model's weights are damaged, or overflow in its number type",
        )
    if config.temperature <= GREEDY_BELOW:
        return likeliest(logits)
    logits = with_temperature(logits, config.temperature)
    if config.top_k is not None:
        logits = keep_top_k(logits, config.top_k)
    logits = keep_top_p(logits, config.top_p)
    logits = keep_min_p(logits, config.min_p)
    return draw(logits, stream)


def likeliest(logits: Float[Tensor, " vocab"]) -> int:
    """The id of the largest logit, the lowest id of those that tie with it.

    Example:
        >>> likeliest(torch.tensor([1.0, 5.0, 5.0 + 1e-6]))
        1
    """
    largest = logits.max()
    tied = logits >= largest - NEAR_TIE * largest.abs().clamp(min=1)
    return int(tied.nonzero()[0])


def with_temperature(logits: Float[Tensor, " vocab"], temperature: float) -> Float[Tensor, " vocab"]:
    """logits / temperature, the largest moved to 0 first, so that no temperature overflows."""
    return (logits - logits.max()) / temperature


def keep_top_k(logits: Float[Tensor, " vocab"], top_k: int) -> Float[Tensor, " vocab"]:
    """Keep the k likeliest tokens; of equals the lower ids.

    Example:
        >>> keep_top_k(torch.tensor([2.0, 1.0, 2.0, 3.0]), 2)
        tensor([2., -inf, -inf, 3.])
    """
    order = logits.argsort(descending=True, stable=True)
    return logits.index_fill(0, order[top_k:], -torch.inf)


def keep_top_p(logits: Float[Tensor, " vocab"], top_p: float) -> Float[Tensor, " vocab"]:
    """Keep the likeliest tokens until their probabilities sum to p, the one that reaches it included; never none.

    Source: Holtzman et al. 2019, section 3.1 (nucleus sampling).

    Example:
        >>> keep_top_p(torch.tensor([0.5, 0.41, 0.09]).log(), 0.9)
        tensor([-0.6931, -0.8916,    -inf])
    """
    if top_p >= 1:
        return logits
    order = logits.argsort(descending=True, stable=True)
    probabilities = logits.double().softmax(0)[order]
    before = probabilities.cumsum(0) - probabilities
    dropped = before >= top_p - ROUNDING
    dropped[0] = False
    return logits.index_fill(0, order[dropped], -torch.inf)


def keep_min_p(logits: Float[Tensor, " vocab"], min_p: float) -> Float[Tensor, " vocab"]:
    """Keep tokens whose probability is at least p times that of the likeliest.

    Source: Nguyen et al. 2024, section 3.

    Example:
        >>> keep_min_p(torch.tensor([0.5, 0.26, 0.24]).log(), 0.5)
        tensor([-0.6931, -1.3471,    -inf])
    """
    if min_p <= 0:
        return logits
    ratios = (logits.double() - logits.max()).exp()
    return logits.masked_fill(ratios < min_p - ROUNDING, -torch.inf)


def draw(logits: Float[Tensor, " vocab"], stream: torch.Generator) -> int:
    """An id drawn with probabilities softmax(logits), from one number of the stream.

    The number u in [0, 1) falls on the ids laid side by side, each as wide as its probability.
    """
    ends = logits.double().softmax(0).cumsum(0)
    u = torch.rand((), generator=stream, dtype=torch.float64) * ends[-1]
    # The first end beyond u belongs to an id of some width: an id of probability 0 ends where it begins.
    return int(torch.searchsorted(ends, u, right=True).clamp(max=int(logits.isfinite().nonzero()[-1])))


def new_seed() -> int:
    """A seed from the machine's own randomness; no random stream of torch, numpy or Python is touched."""
    return secrets.randbelow(2**31)  # ten digits at most, to be told and typed
