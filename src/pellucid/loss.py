"""The loss: how surprised a model is by the tokens that really came next, in nats.

In: logits and target ids.  Out: a number to differentiate, and how many tokens it is about.
Used by: train, evaluation, inspection, cs336.  Read next: optim/muon.py.
"""

import math

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from pellucid.errors import DataError

CHUNK_BYTES = 100_000_000  # of logits at once; half as much is a little slower, twice as much takes twice the memory
WORTH_CHUNKING = 2 * CHUNK_BYTES  # of logits in all: with fewer there is little to save


def cross_entropy(
    logits: Float[Tensor, "*batch vocab"], targets: Integer[Tensor, "*batch"], *, ignore_id: int = -100
) -> Float[Tensor, ""]:
    """Mean surprise over the scored tokens, in nats.

    loss = mean over scored i of  log sum_v exp(logits[i, v])  -  logits[i, targets[i]]

    Args:
        logits: Unnormalised scores; no softmax has been taken.
        targets: The id that came next at each place, or `ignore_id` where nothing is scored.
        ignore_id: The mark of places that are not scored.

    Returns:
        The mean, in float32 or wider. If nothing is scored: 0, with gradients of 0 (a mean over nothing would be NaN).

    Raises:
        DataError: a target outside the vocabulary (eagerly on the CPU; inside a compiled graph nothing is checked).

    Source: Shannon 1948. As `torch.nn.functional.cross_entropy`, which gives NaN where nothing is scored.

    Example:
        >>> cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, -100])).item()  # log 4
        1.3862943649291992
    """
    total, count = summed_cross_entropy(logits, targets, ignore_id=ignore_id)
    return total / count.clamp(min=1)


def summed_cross_entropy(
    logits: Float[Tensor, "*batch vocab"], targets: Integer[Tensor, "*batch"], *, ignore_id: int = -100
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """Total surprise and the number of tokens it is about, for sums over micro-batches and ranks.

    A mean of micro-batch means weighs tokens unequally when the counts differ. Sum first, divide once by the total
    count, and a token is a token however the work is cut.

    Args:
        logits: Unnormalised scores.
        targets: The id that came next at each place, or `ignore_id` where nothing is scored.
        ignore_id: The mark of places that are not scored.

    Returns:
        (sum of -log p over the scored places, how many were scored).

    Raises:
        DataError: a target outside the vocabulary (eagerly on the CPU).

    Example:
        >>> total, count = summed_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, -100]))
        >>> round(total.item(), 4), count.item()
        (2.7726, 2)
    """
    scored = targets != ignore_id
    ids = torch.where(scored, targets, 0).long()
    if logits.device.type == "cpu" and not torch.compiler.is_compiling():
        _refuse_foreign_ids(ids, logits.shape[-1])
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    of_the_target = scores.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    surprise = scores.logsumexp(dim=-1) - of_the_target
    return torch.where(scored, surprise, 0.0).sum(), scored.sum()


def chunking_pays(num_tokens: int, vocab_size: int) -> bool:
    """Whether the logits of so many tokens are so large that they should never be there all at once.

    Measured for 4,096 tokens and 50,257 ids, float32 on a CPU: 0.3 GB instead of 3.1 GB eagerly, 0.6 instead of 1.1 GB
    compiled, in no more time (docs/log.md).

    Example:
        >>> chunking_pays(4096, 4096), chunking_pays(4096, 50257)
        (False, True)
    """
    return num_tokens * vocab_size * 4 > WORTH_CHUNKING  # bytes of a float32


def chunked_cross_entropy(
    hidden: Float[Tensor, "*batch d_model"],
    weight: Float[Tensor, "vocab d_model"],
    targets: Integer[Tensor, "*batch"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    soft_cap: float | None = None,
    num_unused_ids: int = 0,
    ignore_id: int = -100,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """`summed_cross_entropy` of a head's logits, of which only a chunk is ever there.

    logits z = cap tanh((h W^T + b) / cap);  d loss / d z = softmax(z) - [v is the target];  from there on by the chain
    rule to h, W and b. Each chunk's gradients are computed at once, and its logits forgotten; what is differentiated
    in the end is a plane that touches the loss: of its value, with its gradients. So the work is no more than that of
    the whole, and it may be compiled, and differentiated by autograd or torch.func, like any sum.

    Args:
        hidden: What the head reads; see `TransformerLM.hidden_states`.
        weight: The head's.
        targets: The id that came next at each place, or `ignore_id` where nothing is scored.
        bias: The head's.
        soft_cap: The bound of the logits; see `ModelConfig.logit_soft_cap`.
        num_unused_ids: The last ids of the vocabulary, which score -inf.
        ignore_id: The mark of places that are not scored.

    Returns:
        (sum of -log p over the scored places, how many were scored).

    Raises:
        DataError: a target outside the vocabulary (eagerly on the CPU).

    Source: Wijmans et al. 2024, "Cut Your Losses", section 4, without its kernels. torch's
        `linear_cross_entropy(..., options=LinearCrossEntropyOptions())` does the same in half the memory and more time,
        knows no soft cap, and neither torch.compile nor torch.func.

    Example:
        >>> hidden, weight, targets = torch.randn(2, 3, 4), torch.randn(5, 4), torch.tensor([[0, 4, 1], [2, -100, 3]])
        >>> total, count = chunked_cross_entropy(hidden, weight, targets)
        >>> torch.allclose(total, summed_cross_entropy(hidden @ weight.T, targets)[0]), count.item()
        (True, 5)
    """
    used = len(weight) - num_unused_ids
    flat, ids, weight = hidden.flatten(0, -2), targets.flatten(), weight[:used]
    bias = None if bias is None else bias[:used]
    num_chunks = max(1, math.ceil(ids.numel() * used * 4 / CHUNK_BYTES))
    size = max(1, -(-ids.numel() // num_chunks))  # all alike, but for the last one
    total = torch.zeros((), device=flat.device)
    count = torch.zeros((), device=flat.device, dtype=torch.int64)
    head, offset = weight.detach(), 0.0 if bias is None else bias.detach()
    learns = weight.requires_grad or not torch.is_grad_enabled()  # a frozen head's gradients would be work for nothing
    of_hidden, of_weight, of_bias = [], torch.zeros_like(weight), torch.zeros_like(weight[:, 0])
    for some, some_ids in zip(flat.detach().split(size), ids.split(size), strict=True):
        part, scored, of_logits = _surprise_and_gradient(some @ head.T + offset, some_ids, soft_cap, ignore_id)
        total, count = total + part, count + scored
        of_hidden.append(of_logits @ head)
        if learns:
            of_weight += of_logits.T @ some
        if bias is not None:
            of_bias += of_logits.sum(0)
    plane = (flat * torch.cat(of_hidden)).sum() + torch.dot(weight.flatten(), of_weight.flatten())
    plane = plane if bias is None else plane + torch.dot(bias, of_bias)
    return total + (plane - plane.detach()), count


def _surprise_and_gradient(
    logits: Float[Tensor, "row vocab"], targets: Integer[Tensor, " row"], soft_cap: float | None, ignore_id: int
) -> tuple[Float[Tensor, ""], Int[Tensor, ""], Float[Tensor, "row vocab"]]:
    """Of one chunk: summed surprise, how many were scored, and the gradient at the logits before they are bent."""
    slope = None
    if soft_cap is not None:
        bent = torch.tanh(logits / soft_cap)
        logits, slope = soft_cap * bent, 1 - bent.square()
    total, count = summed_cross_entropy(logits, targets, ignore_id=ignore_id)
    scored = targets != ignore_id
    ids = torch.where(scored, targets, 0).long().unsqueeze(-1)
    gradient = torch.softmax(logits.to(total.dtype), dim=-1)
    gradient.scatter_add_(-1, ids, -torch.ones_like(ids, dtype=gradient.dtype))
    gradient *= scored.unsqueeze(-1)
    return total, count, gradient if slope is None else gradient * slope


def _refuse_foreign_ids(ids: Tensor, vocab_size: int) -> None:
    """On a GPU such an id kills the context with an unreadable message; data is checked before it gets there."""
    if ids.numel() == 0:
        return
    low, high = (int(bound) for bound in torch.aminmax(ids))
    if low < 0 or high >= vocab_size:
        raise DataError(
            f"target ids from 0 to {vocab_size - 1} (the model's vocabulary has {vocab_size})",
            came=f"ids from {low} to {high}",
            remedy="prepare the data with the model's own tokenizer, or give the model a larger vocab_size",
        )
