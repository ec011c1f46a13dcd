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

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.errors import ShapeError
from pellucid.model_config import ModelConfig


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
                for row, start in enumerate(self.lengths):
                    stored[row, :, start : start + num_new] = new[row]
        end = max(self.lengths) + num_new
        return self.keys[:, :, :end], self.values[:, :, :end]


class KVCache:
    """A `LayerCache` for each layer, side by side with `model.blocks`.

    Args:
        config: The model's.
        batch_size: Sequences.
        capacity: Positions there is room for.
        device: Where it lives.
        dtype: Its number type; the model's activations'.
    """

    def __init__(
        self,
        config: ModelConfig,
        batch_size: int,
        capacity: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        shape = (batch_size, config.num_kv_heads, capacity, config.d_head)
        zeros = lambda: torch.zeros(shape, device=device, dtype=dtype)  # noqa: E731 - zeros: 0 * NaN would be NaN
        self.capacity = capacity
        self.lengths = [0] * batch_size
        self.layers = [LayerCache(zeros(), zeros(), self.lengths) for _ in range(config.num_layers)]

    def check_room(self, batch_size: int, num_new: int) -> None:
        """Refuse a batch that does not fit, before any layer writes.

        Raises:
            ShapeError: naming both numbers.
        """
        if batch_size != len(self.lengths):
            raise ShapeError(
                f"{len(self.lengths)} rows, as the cache has",
                came=f"{batch_size}",
                remedy="make a cache for this batch size",
            )
        if max(self.lengths) + num_new > self.capacity:
            raise ShapeError(
                f"at most {self.capacity - max(self.lengths)} more positions (capacity {self.capacity})",
                came=f"{num_new} after {max(self.lengths)}",
                remedy="make a cache with more capacity, or read a shorter window anew",
            )

    def advance(self, num_new: int | Sequence[int]) -> None:
        """Move each row's end past its new positions; a sequence says how many of them were real in each row."""
        steps = [num_new] * len(self.lengths) if isinstance(num_new, int) else num_new
        self.lengths[:] = [length + step for length, step in zip(self.lengths, steps, strict=True)]

    def reset(self) -> None:
        """Forget everything; the memory stays."""
        self.lengths[:] = [0] * len(self.lengths)
