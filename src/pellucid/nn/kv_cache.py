"""The key-value cache: what earlier tokens left behind, so that a new token costs one position and not all of them.

A cache is an argument, never part of a module: two conversations are two caches. A layer writes after the last
position and reads everything so far; it does not move the end. Whoever feeds the tokens advances it, once, after
all layers have written:

    cache = KVCache(config, batch_size=2, capacity=64)
    logits = model(token_ids, cache=cache)        # every layer writes at cache.lengths
    cache.advance(token_ids.shape[1])             # or advance([3, 7]) when rows have lengths of their own

In: keys and values of new positions.  Out: those of all positions so far.  Used by: multi_head, transformer, generate.
Read next: multi_head.py.
"""

from collections.abc import Sequence
from copy import copy

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pellucid.errors import ShapeError
from pellucid.model_config import ModelConfig
from pellucid.nn.linear import Device, DType


class LayerCache:
    """Keys and values of one layer. Row b holds cache.lengths[b] positions; what lies past them is never attended."""

    def __init__(self, keys: Tensor, values: Tensor, lengths: list[int]) -> None:
        self.keys, self.values, self.lengths = keys, values, lengths

    def write(
        self, key: Float[Tensor, "batch kv_head query d_head"], value: Float[Tensor, "batch kv_head query d_head"]
    ) -> tuple[Float[Tensor, "batch kv_head key d_head"], Float[Tensor, "batch kv_head key d_head"]]:
        """Put new positions behind each row's last one and return everything up to the longest row's end."""
        num_new = key.shape[2]
        for stored, new in ((self.keys, key), (self.values, value)):
            if len(set(self.lengths)) == 1:
                stored[:, :, self.lengths[0] : self.lengths[0] + num_new] = new
            else:
                places = next_places(self.lengths, num_new, stored.device)
                rows = torch.arange(len(places), device=stored.device)[:, None]
                stored.transpose(1, 2)[rows, places] = new.transpose(1, 2).to(stored.dtype)
        end = max(self.lengths) + num_new
        return self.keys[:, :, :end].to(key.dtype), self.values[:, :, :end].to(value.dtype)


class KVCache:
    """A `LayerCache` for each layer, side by side with `model.blocks`.

    Args:
        config: The model's.
        batch_size: Sequences.
        capacity: Positions there is room for.
        device: Where it lives.
        dtype: Its number type; the model's activations', or they are converted at every step.
    """

    def __init__(
        self,
        config: ModelConfig,
        batch_size: int,
        capacity: int,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        self.capacity = capacity
        self.lengths = [0] * batch_size
        # Zeros: what is never attended has weight 0, and 0 times what an empty tensor may hold can be NaN.
        shape, kind = (batch_size, config.num_kv_heads, capacity, config.d_head), {"device": device, "dtype": dtype}
        self.layers = [
            LayerCache(torch.zeros(shape, **kind), torch.zeros(shape, **kind), self.lengths)
            for _ in range(config.num_layers)
        ]

    def only(self, row: int) -> "KVCache":
        """One row as a cache by itself, in the same memory; it counts its length for itself."""
        alone = copy(self)
        alone.lengths = [self.lengths[row]]
        alone.layers = [
            LayerCache(layer.keys[row : row + 1], layer.values[row : row + 1], alone.lengths) for layer in self.layers
        ]
        return alone

    def check_room(self, batch_size: int, num_new: int) -> None:
        """Refuse a batch that does not fit, before any layer writes.

        Raises:
            ShapeError: naming both numbers.
        """
        if batch_size != len(self.lengths):
            rows = f"{len(self.lengths)} rows, as the cache has"
            raise ShapeError(rows, came=str(batch_size), remedy="make a cache for this batch size")
        if max(self.lengths) + num_new > self.capacity:
            raise ShapeError(
                f"room for them in the cache (capacity {self.capacity})",
                came=f"{num_new} more positions after {max(self.lengths)}",
                remedy="make a cache with more capacity, or read a shorter window anew",
            )

    def advance(self, num_new: int | Sequence[int]) -> None:
        """Move each row's end past its new positions; a sequence says how many of them were real in each row."""
        steps = [num_new] * len(self.lengths) if isinstance(num_new, int) else num_new
        self.lengths[:] = [length + step for length, step in zip(self.lengths, steps, strict=True)]

    def reset(self) -> None:
        """Forget everything; the memory stays."""
        self.lengths[:] = [0] * len(self.lengths)


def next_places(lengths: list[int], num_new: int, device: torch.device) -> Int[Tensor, "batch query"]:
    """Places lengths[b], lengths[b] + 1, ... of each row b.

    Example:
        >>> next_places([0, 7], 3, torch.device("cpu"))
        tensor([[0, 1, 2],
                [7, 8, 9]])
    """
    return torch.tensor(lengths, device=device)[:, None] + torch.arange(num_new, device=device)
