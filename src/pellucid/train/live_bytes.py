"""How much memory tensors hold at most, counted while torch computes.

Every tensor that an operation makes is counted until nothing holds it any more, autograd included. On torch's "meta"
device, where tensors have shapes and no numbers, a step can so be rehearsed in a moment and without its memory.

In: a block of code.  Out: bytes.  Used by: memory.  Read next: memory.py.
"""

import weakref
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Counts what the operations inside its block allocate; what was there before is not counted.

    Example:
        >>> import torch
        >>> with LiveBytes() as live:
        ...     kept = torch.ones(1000)
        ...     total = (kept + 1).sum().item()
        >>> live.now, live.peak
        (4000, 8004)
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute as always, and count."""
        for tensor in tree_leaves((args, kwargs)):
            self._meet(tensor, is_new=False)  # what comes back may be what went in
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            self._meet(tensor, is_new=True)
        return result

    def _meet(self, tensor: Any, *, is_new: bool) -> None:
        if not isinstance(tensor, Tensor):
            return
        storage = tensor.untyped_storage()  # torch keeps this object as long as anything holds the memory
        address = storage._cdata
        if address in self.sizes:
            return
        self.sizes[address] = size = storage.nbytes() if is_new else 0
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._forget, address)

    def _forget(self, address: int) -> None:
        self.now -= self.sizes.pop(address)
