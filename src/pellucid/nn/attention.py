"""Attention: scores, weights, and the weighted mean of values.

These functions are the reference: teaching and inspection call them, and the fused kernel is tested against them.
A mask is boolean, True = may attend; where it is False the score is -inf, never a large finite number, which a network
learns to score below.

In: queries, keys, values.  Out: weights, and weighted values.  Used by: multi_head.  Read next: kv_cache.py.
"""

import math
from contextlib import nullcontext

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from pellucid.errors import ShapeError
from pellucid.nn.softmax import softmax, widen


def causal_mask(
    query_index: Int[Tensor, "*batch query"], num_keys: int, window: int | None = None
) -> Bool[Tensor, "*batch query {num_keys}"]:
    """True where key j is not after query i: j <= i, and with a window w also j > i - w.

    Args:
        query_index: The place of each query in the sequence of keys. With 7 keys cached and 3 new tokens: 7, 8, 9.
        num_keys: Keys 0 ... num_keys - 1.
        window: How many keys, its own included, a query sees.

    Example:
        >>> causal_mask(torch.tensor([1, 2]), num_keys=3, window=2).int()
        tensor([[1, 1, 0],
                [0, 1, 1]], dtype=torch.int32)
    """
    query_index = query_index[..., None]
    key_index = torch.arange(num_keys, dtype=query_index.dtype, device=query_index.device)
    mask = key_index <= query_index
    return mask if window is None else mask & (key_index > query_index - window)


def packed_mask(
    query_index: Int[Tensor, "#batch query"],
    num_keys: int,
    window: int | None = None,
    *,
    ends: Int[Tensor, " batch"] | None = None,
    document_ids: Int[Tensor, "batch query"] | None = None,
) -> Bool[Tensor, "#batch query {num_keys}"]:
    """`causal_mask` for rows that are not one whole text each: padded behind, or packed with several documents.

    Args:
        query_index: The place of each query in its row.
        num_keys: Keys 0 ... num_keys - 1.
        window: How many keys, its own included, a query sees.
        ends: Where each row's padding begins; keys from there on are seen by nobody.
        document_ids: Which document each place belongs to; queries and keys must be the same places.

    Raises:
        ShapeError: if document_ids are not as many as keys.

    Example:
        >>> packed_mask(torch.arange(3)[None], 3, document_ids=torch.tensor([[0, 0, 1]])).int()
        tensor([[[1, 0, 0],
                 [1, 1, 0],
                 [0, 0, 1]]], dtype=torch.int32)
    """
    mask = causal_mask(query_index, num_keys, window)
    if ends is not None:
        mask = mask & (torch.arange(num_keys, device=mask.device) < ends[:, None])[:, None]
    if document_ids is not None:
        if document_ids.shape[1] != num_keys:
            came = f"{document_ids.shape[1]} beside {num_keys} keys"
            raise ShapeError(
                "a document id for every key", came=came, remedy="pack documents only where none is cached"
            )
        mask = mask & (document_ids[:, :, None] == document_ids[:, None, :])
    return mask


def attention_weights(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "*batch query key"]:
    """softmax(query key^T * scale), masked, in float32 or wider.

    Args:
        query: What each position looks for.
        key: What each position offers.
        mask: True = may attend; it broadcasts. Default: everything.
        scale: Default: 1 / sqrt(d_head), which keeps the variance of scores near 1.

    Returns:
        Weights; a row sums to 1, or to 0 if it may attend to nothing.

    Source: Vaswani et al. 2017, equation 1.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> attention_weights(x, x, torch.tensor([[True, False], [True, True]]))
        tensor([[1.0000, 0.0000],
                [0.3302, 0.6698]])
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    # Autocast would narrow the factors again. bfloat16 has the range of scores, and gains speed; float16 overflows.
    in_float32 = torch.autocast(query.device.type, enabled=False) if query.dtype == torch.float16 else nullcontext()
    with in_float32:
        scores = (widen(query) * scale) @ widen(key).transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return softmax(widen(scores), dim=-1)


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_value"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch query d_value"]:
    """attention_weights(query, key, mask) @ value: for each query, the weighted mean of the values.

    Args:
        query: What each position looks for.
        key: What each position offers.
        value: What each position gives.
        mask: True = may attend; it broadcasts. Default: everything.
        scale: Default: 1 / sqrt(d_head).
        dropout: Fraction of weights dropped; the caller passes 0 outside training.

    Source: Vaswani et al. 2017, equation 1. `torch.nn.functional.scaled_dot_product_attention` aligns its causal mask
    top-left, so a cached decoder must not use it as it is.

    Example:
        >>> x = torch.eye(2)
        >>> scaled_dot_product_attention(x, x, torch.tensor([[0.0], [1.0]]))
        tensor([[0.3302],
                [0.6698]])
    """
    weights = attention_weights(query, key, mask, scale=scale).to(value.dtype)
    if dropout:
        weights = functional.dropout(weights, dropout)
    return weights @ value


def fused_attention(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_value"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
    causal: bool = False,
) -> Float[Tensor, "*batch query d_value"]:
    """The same function through torch's kernel, which never makes the weights.

    Args:
        query: What each position looks for.
        key: What each position offers.
        value: What each position gives.
        mask: True = may attend; it broadcasts. Default: everything.
        scale: Default: 1 / sqrt(d_head).
        dropout: Fraction of weights dropped; the caller passes 0 outside training.
        causal: In place of a mask: each query sees the keys up to its own place. As many keys as queries, only.

    Example:
        >>> x = torch.eye(2)
        >>> fused_attention(x, x, x, causal=True)
        tensor([[1.0000, 0.0000],
                [0.3302, 0.6698]])
    """
    arguments = {"scale": scale, "dropout_p": dropout}
    if mask is None:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=causal, **arguments)
    # Kernels disagree on a row that may attend to nothing (NaN, zeros, the mean of all values), so they see none.
    empty = ~mask.any(-1, keepdim=True)
    return functional.scaled_dot_product_attention(query, key, value, mask | empty, **arguments).masked_fill(empty, 0)
