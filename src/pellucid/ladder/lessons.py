"""Lessons beside the ladder: small functions, each of which shows one thing worth trying by hand.

    causal_mask_from_triu, _tril, _positions      three ways to write the causal mask, one mask
    attention, attention_by_prefixes              a causal mask equals one run for each prefix
    hide_before_softmax, hide_after_softmax       rows add up to 1 after -inf, and not after multiplying by 0
    variance_of_scores                            scaled scores have variance 1, unscaled ones d_head
    saturation                                    large scores make softmax choose one, and stop learning
    scores_by_name, shared_axis_contracts, missing_axis_sums, new_axis_broadcasts      einsum with named axes
    residual, residual_in_place                   `x += f(x)` breaks the backward pass

In: tensors.  Out: tensors and numbers.  Used by: learners, docs/ladder.md.  Read next: pellucid/nn/linear.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor

# --- three causal masks are one


def causal_mask_from_triu(length: int) -> Bool[Tensor, "query key"]:
    """True = may attend, from the mask that is *added* to scores: -inf strictly above the diagonal, 0 elsewhere.

    Example:
        >>> causal_mask_from_triu(3)
        tensor([[ True, False, False],
                [ True,  True, False],
                [ True,  True,  True]])
    """
    to_add = torch.full((length, length), -torch.inf).triu(diagonal=1)
    return to_add == 0


def causal_mask_from_tril(length: int) -> Bool[Tensor, "query key"]:
    """True = may attend, from the mask of ones on and below the diagonal: scores are filled where it is 0.

    Example:
        >>> bool(torch.equal(causal_mask_from_tril(5), causal_mask_from_triu(5)))
        True
    """
    hidden = torch.ones(length, length).tril() == 0
    return ~hidden


def causal_mask_from_positions(length: int) -> Bool[Tensor, "query key"]:
    """True = may attend, said in its own words: the key does not come after the query.

    This is the form that goes on working when queries begin in the middle of a sequence (a cache), when keys far behind
    are dropped (a window), or when several documents share a row.

    Example:
        >>> bool(torch.equal(causal_mask_from_positions(5), causal_mask_from_triu(5)))
        True
    """
    position = torch.arange(length)
    return position[None, :] <= position[:, None]


# --- a causal mask equals n separate prefix runs


def attention(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_value"],
    may_attend: Bool[Tensor, "query key"] | None = None,
) -> Float[Tensor, "*batch query d_value"]:
    """softmax(Q K^T / sqrt(d_head)) V, with -inf where a query may not attend."""
    scores = scores_by_name(query, key) / query.shape[-1] ** 0.5
    if may_attend is not None:
        scores = scores.masked_fill(~may_attend, -torch.inf)
    return einsum(torch.softmax(scores, dim=-1), value, "... query key, ... key d_value -> ... query d_value")


def attention_by_prefixes(
    query: Float[Tensor, "*batch position d_head"],
    key: Float[Tensor, "*batch position d_head"],
    value: Float[Tensor, "*batch position d_value"],
) -> Float[Tensor, "*batch position d_value"]:
    """Causal attention without a mask: for each position, one run over the sequence that ends there.

    A model that writes sees exactly these n sequences, one after the other. With the mask, one run trains on all of
    them: this is why a Transformer learns n predictions for the price of one sequence.

    Example:
        >>> q, k, v = torch.randn(3, 5, 8)
        >>> masked = attention(q, k, v, causal_mask_from_tril(5))
        >>> bool(torch.allclose(attention_by_prefixes(q, k, v), masked, atol=1e-6))
        True
    """
    ends = range(1, query.shape[-2] + 1)
    runs = [attention(query[..., end - 1 : end, :], key[..., :end, :], value[..., :end, :]) for end in ends]
    return torch.cat(runs, dim=-2)


# --- rows sum to 1 after -inf


def hide_before_softmax(
    scores: Float[Tensor, "*batch query key"], may_attend: Bool[Tensor, "query key"]
) -> Float[Tensor, "*batch query key"]:
    """Scores get -inf, then softmax: exp(-inf) = 0, and what is left shares the whole of 1.

    Example:
        >>> hide_before_softmax(torch.zeros(3, 3), causal_mask_from_tril(3)).sum(dim=-1)
        tensor([1., 1., 1.])
    """
    return torch.softmax(scores.masked_fill(~may_attend, -torch.inf), dim=-1)


def hide_after_softmax(
    scores: Float[Tensor, "*batch query key"], may_attend: Bool[Tensor, "query key"]
) -> Float[Tensor, "*batch query key"]:
    """Softmax, then weights times 0: the hidden keys' share is lost, and rows must be divided by their sum again.

    Divided so, the weights are those of `hide_before_softmax`: the sum over hidden keys cancels. The detour costs a
    division, and underflows when a hidden score was by far the largest.

    Example:
        >>> hide_after_softmax(torch.zeros(3, 3), causal_mask_from_tril(3)).sum(dim=-1)
        tensor([0.3333, 0.6667, 1.0000])
    """
    return torch.softmax(scores, dim=-1) * may_attend


# --- why scores are scaled


def variance_of_scores(d_head: int, *, scaled: bool, num_pairs: int = 20_000) -> float:
    """The variance of q . k over random pairs with features of variance 1: near d_head, or near 1 if scaled.

    One product of two independent features has variance 1; a sum of d_head of them has d_head; dividing by
    sqrt(d_head) divides the variance by d_head.

    Args:
        d_head: Features of a query and of a key.
        scaled: Whether to divide by sqrt(d_head).
        num_pairs: How many pairs to draw. With 20,000 the estimate is off by about 1 % (sqrt(2 / num_pairs)).

    Source: Vaswani et al. 2017, footnote 4.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> round(variance_of_scores(64, scaled=False) / 64, 1), round(variance_of_scores(64, scaled=True), 1)
        (1.0, 1.0)
    """
    query, key = torch.randn(2, num_pairs, d_head)
    scores = einsum(query, key, "row d_head, row d_head -> row")
    return float((scores / d_head**0.5 if scaled else scores).var())


class Saturation(NamedTuple):
    """What softmax makes of one row of scores."""

    largest_weight: float
    """The largest share: 1 when softmax has chosen."""
    largest_slope: float
    """The largest |d weight_i / d score_j|: 0 when no score can change anything."""


def saturation(scores: Float[Tensor, " key"], factor: float) -> Saturation:
    """How far softmax(factor * scores) has made up its mind, and how much it can still learn.

    The slope is d w_i / d s_j = w_i (delta_ij - w_j), with delta 1 where i = j. When one weight is near 1 and the
    others near 0, every such product is near 0: whatever the loss says, no score moves.

    Example:
        >>> scores = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
        >>> [round(number, 3) for number in saturation(scores, factor=1.0)]
        [0.287, 0.205]
        >>> [round(number, 3) for number in saturation(scores, factor=1000.0)]
        [1.0, 0.0]
    """
    weights = torch.softmax(factor * scores, dim=-1)
    slopes = torch.diag(weights) - weights[:, None] * weights[None, :]
    return Saturation(float(weights.max()), float(slopes.abs().max()))


# --- einsum with named axes: what happens to an axis can be read off its name


def scores_by_name(
    query: Float[Tensor, "*batch query d_head"], key: Float[Tensor, "*batch key d_head"]
) -> Float[Tensor, "*batch query key"]:
    """Query @ key.transpose(-2, -1), without the question which axis is -2.

    Example:
        >>> query, key = torch.randn(2, 4, 3, 8)
        >>> bool(torch.allclose(scores_by_name(query, key), query @ key.transpose(-2, -1), atol=1e-6))
        True
    """
    return einsum(query, key, "... query d_head, ... key d_head -> ... query key")


def shared_axis_contracts(
    left: Float[Tensor, "row d_in"], right: Float[Tensor, "d_in column"]
) -> Float[Tensor, "row column"]:
    """d_in is on both sides and not in the result: multiply along it and add up. This is left @ right."""
    return einsum(left, right, "row d_in, d_in column -> row column")


def missing_axis_sums(x: Float[Tensor, "row column"]) -> Float[Tensor, " row"]:
    """`column` is not in the result: add up along it. This is x.sum(dim=-1)."""
    return einsum(x, "row column -> row")


def new_axis_broadcasts(left: Float[Tensor, " row"], right: Float[Tensor, " column"]) -> Float[Tensor, "row column"]:
    """Each side lacks an axis that the result has: repeat it along that axis. This is left[:, None] * right[None, :].

    Example:
        >>> new_axis_broadcasts(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0, 100.0]))
        tensor([[  1.,  10., 100.],
                [  2.,  20., 200.]])
    """
    return einsum(left, right, "row, column -> row column")


# --- `x += f(x)` breaks the backward pass


def residual(x: Float[Tensor, "..."], part: Callable[[Tensor], Tensor]) -> Float[Tensor, "..."]:
    """X + part(x) in a new tensor; the old one stays as `part` saw it."""
    return x + part(x)


def residual_in_place(x: Float[Tensor, "..."], part: Callable[[Tensor], Tensor]) -> Float[Tensor, "..."]:
    """The same number by ``x += part(x)``, and a RuntimeError on the way back.

    The gradient of a product needs its factors, so a linear layer or a norm keeps the x it saw. `+=` writes over that
    very memory. Torch counts the writes to a tensor and refuses to go back through a value that is no longer there. If
    nothing in `part` kept x (a plain sum, say), nothing breaks, which makes the habit all the more treacherous.

    Example:
        >>> layer = torch.nn.Linear(4, 4)
        >>> x = torch.randn(2, 4, requires_grad=True) * 1.0  # times 1: a leaf may not be overwritten at all
        >>> residual_in_place(x, layer).sum().backward()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation...
    """
    x += part(x)
    return x
