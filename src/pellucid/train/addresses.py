"""The public addresses of a model's modules, for whoever looks at them with torch's own hooks while it computes.

In: a model.  Out: (address, module).  Used by: first_non_finite.py, health.py.  Read next: first_non_finite.py.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.distributed.tensor import DTensor


def addresses(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module that computes something, by its address; lists of modules and the model itself do not.

    Example:
        >>> [address for address, _ in addresses(nn.ModuleDict({"a": nn.Sequential(nn.Linear(1, 1)), "b": nn.ReLU()}))]
        ['a', 'a.0', 'b']
    """
    for address, module in model.named_modules():
        if address and not isinstance(module, nn.ModuleList | nn.ModuleDict):
            yield address, module


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of real numbers that a module was given, or gave."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)


def is_finite(tensor: Tensor) -> bool:
    """Whether all its numbers are; of a sharded tensor, those that lie here."""
    here = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return bool(here.detach().isfinite().all())
