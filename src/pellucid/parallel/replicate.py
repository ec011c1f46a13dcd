"""Two ways to train one model on many processes, both torch's own: every rank holds all of it, or each a part.

    replicated   DDP     every rank has all weights; gradients are added up while backward still runs
    shard        FSDP2   every rank keeps a slice of each weight, gradient and optimizer state; a block's weights are
                         gathered when it is computed and let go behind it

Both take the mean over ranks. A loss here is a sum over tokens divided by the count of all ranks, so whoever takes a
gradient multiplies by the number of ranks.

In: a module that computes a loss.  Out: the same, whose gradients are those of all ranks.  Used by: train.
Read next: ../train/step.py.

Source: Li et al. 2020, "PyTorch Distributed"; Zhao et al. 2023, "PyTorch FSDP"; torch.distributed.fsdp.fully_shard.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pellucid.parallel.ranks import Ranks


def replicated(module: nn.Module) -> DistributedDataParallel:
    """The module with gradients that every rank shares, as mean over ranks."""
    return DistributedDataParallel(module, forward_sync_buffers=False)  # tables of positions do not change


def shard(model: nn.Module, ranks: Ranks, precision: str = "float32") -> None:
    """Cut every weight of a language model into slices, one a rank; in place, block by block.

    Args:
        model: Has `blocks`; the same weights on every rank.
        ranks: Who takes part.
        precision: What products are taken in; weights, and sums over ranks, stay in float32.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # half a second, for who asks for it

    mesh = init_device_mesh(next(model.parameters()).device.type, (ranks.count,))
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if precision == "bfloat16" else None, reduce_dtype=torch.float32
    )
    for block in cast(nn.ModuleList, model.blocks):
        fully_shard(block, mesh=mesh, mp_policy=policy)
    # By default the outermost part keeps its gathered weights behind an evaluation, and would not see new ones.
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=True)


def is_sharded(model: nn.Module) -> bool:
    """Whether `shard` has cut this model."""
    return hasattr(model, "set_requires_gradient_sync")


def synchronised(module: nn.Module, last: bool) -> AbstractContextManager[Any]:
    """Where a forward and backward pass runs; only the last of a step adds gradients up over ranks.

    Args:
        module: What computes the loss: replicated, with a sharded model inside, or neither.
        last: Whether this is a step's last micro-batch.
    """
    for part in module.modules():
        if is_sharded(part):
            cast(Any, part).set_requires_gradient_sync(last)
            return nullcontext()
    if isinstance(module, DistributedDataParallel) and not last:
        return module.no_sync()
    return nullcontext()
