"""Joining the other processes, as torchrun has started them.

torchrun tells each process who it is in its environment; without that a process is alone, and no process group is ever
made. Numbers travel by gloo, between CPUs; gradients of CUDA devices by NCCL.

In: RANK, WORLD_SIZE, LOCAL_RANK.  Out: `Ranks`, while a block lasts.  Used by: the command line.
Read next: replicate.py.

Source: torch.distributed.run, "Environment Variables".
"""

import gc
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist

from pellucid.errors import ConfigError, TrainingStopped
from pellucid.parallel.ranks import ALONE, Ranks

LOST = ("Connection closed", "connection reset", "Connection reset", "gloo", "NCCL", "Broken pipe", "Timed out")


def launched(environment: Mapping[str, str] | None = None) -> Ranks:
    """Who this process is, by its environment.

    Raises:
        ConfigError: if the environment contradicts itself.

    Example:
        >>> launched({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"})
        Ranks(rank=1, count=2, local_rank=1)
        >>> launched({})
        Ranks(rank=0, count=1, local_rank=0)
    """
    environment = os.environ if environment is None else environment
    if environment.get("WORLD_SIZE", "1") == "1":
        return ALONE
    try:
        return Ranks(*(int(environment[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")))
    except (KeyError, ValueError) as error:
        raise ConfigError(
            "RANK, WORLD_SIZE and LOCAL_RANK in the environment, as torchrun sets them",
            came=f"others ({error!r})",
            remedy="start with `torchrun --standalone --nproc-per-node N -m pellucid train ...`",
        ) from error


def speaks_of_loss(error: RuntimeError) -> bool:
    """Whether an error says that another process is gone."""
    return any(sign in str(error) for sign in LOST)


@contextmanager
def joined_ranks() -> Generator[Ranks]:
    """The processes that torchrun started together, as long as the block lasts; alone, nothing is done.

    Raises:
        TrainingStopped: on the first rank, if another is lost on the way.
    """
    ranks = launched()
    if ranks.count == 1:
        yield ranks
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(ranks.local_rank % torch.cuda.device_count())
        dist.init_process_group("cpu:gloo,cuda:nccl")
    else:
        dist.init_process_group("gloo")
    try:
        yield ranks
        dist.barrier()  # whoever leaves while others still send is a lost one to them
    except RuntimeError as error:
        if not speaks_of_loss(error):
            raise
        raise TrainingStopped(
            f"all {ranks.count} processes to stay to the end",
            came="one that is gone",
            remedy="give the same command again: the run goes on from its last checkpoint (torchrun --max-restarts 3 "
            "does so by itself)",
        ) from error
    finally:
        gc.collect()  # a replica that is still there holds on to the group, and ends the process with a bang
        with suppress(RuntimeError, ValueError):  # nobody may be left to say goodbye to
            dist.destroy_process_group()
