"""Weights that are cut over several processes (FSDP2 keeps each as a `DTensor`): made whole, and cut again.

The type is known by its methods: importing it takes half a second, which a run on one process need not wait for.

In: tensors.  Out: tensors.  Used by: muon, clipping, model_optimizer, ema, train.  Read next: muon.py.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor


def is_cut(tensor: Tensor) -> bool:
    """Whether this process holds only a part of the tensor."""
    return hasattr(tensor, "full_tensor")


def here(tensor: Any) -> Tensor:
    """What this process holds of a tensor; a change to it is a change to the tensor."""
    return tensor.to_local() if is_cut(tensor) else tensor


def whole(tensor: Any) -> Tensor:
    """All of a tensor. The parts of one that is cut are gathered, which every process has to ask for."""
    return tensor.full_tensor() if is_cut(tensor) else tensor


def cut_like(tensor: Tensor, example: Any) -> Tensor:
    """A whole tensor, the same on every process, cut as `example` is; without exchange.

    Example:
        >>> import torch
        >>> cut_like(torch.ones(2), torch.zeros(2))
        tensor([1., 1.])
    """
    if not is_cut(example) or is_cut(tensor):
        return tensor
    everywhere = type(example).from_local(tensor, example.device_mesh)
    return everywhere.redistribute(placements=example.placements)


def whole_state(state: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """All tensors of a state, as they are without ranks; every process has to ask.

    Args:
        state: By name; one tensor may have several names, as a tied weight has.
        keep: Whether this process wants them; one that does not takes part, and lets each go at once.
    """
    kept: dict[str, Tensor] = {}
    first_names: dict[int, str] = {}
    for name, tensor in state.items():
        first = first_names.setdefault(id(tensor), name)
        gathered = whole(tensor.detach()) if first == name else kept.get(first)
        if keep and gathered is not None:
            kept[name] = gathered
    return kept
