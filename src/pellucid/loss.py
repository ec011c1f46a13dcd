"""The loss: how surprised a model is by the tokens that really came next, in nats.

In: logits and target ids.  Out: a number to differentiate, and how many tokens it is about.
Used by: train, evaluation, inspection, cs336.  Read next: optim/muon.py.
"""

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from pellucid.errors import DataError


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
