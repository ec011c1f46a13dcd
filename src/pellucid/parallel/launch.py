"""Joining the other processes, as torchrun has started them.

torchrun tells each process who it is in its environment; without that a process is alone, and no process group is ever
made. Numbers travel by gloo, between CPUs; gradients of CUDA devices by NCCL.

In: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT.  Out: `Ranks`, while a block lasts.
Used by: the command line.  Read next: replicate.py.

Source: torch.distributed.run, "Environment Variables".
"""

import gc
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist

from pellucid.errors import ConfigError, PellucidError, TrainingStopped, UserError
from pellucid.parallel.attempt import PAUSE, of_this_attempt
from pellucid.parallel.ranks import ALONE, Ranks

NEEDED = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
OVER = "over"
"""The key by which a process that goes says to the others that it has told why."""
TOGETHER = 5.0  # seconds within which all processes come to see what all of them see
LEAVE = (
    10.0  # seconds for whoever speaks: torchrun ends all, in mid-sentence, when the first has left, and this wait too
)
LOST = ("Connection closed", "connection reset", "Connection reset", "gloo", "NCCL", "Broken pipe", "Timed out")


def launched(environment: Mapping[str, str] | None = None) -> Ranks:
    """Who this process is, by its environment.

    Raises:
        ConfigError: if the environment contradicts itself.

    Example:
        >>> address = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        >>> launched({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", **address})
        Ranks(rank=1, count=2, local_rank=1)
        >>> launched({})
        Ranks(rank=0, count=1, local_rank=0)
    """
    environment = os.environ if environment is None else environment
    if environment.get("WORLD_SIZE", "1") == "1":
        return ALONE
    if missing := [name for name in NEEDED if not environment.get(name)]:
        raise _half_said(f"WORLD_SIZE={environment['WORLD_SIZE']} and no {' and no '.join(missing)}")
    try:
        return Ranks(*(int(environment[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")))
    except ValueError as error:
        raise _half_said(f"what is no number ({error})") from error


def _half_said(came: str) -> ConfigError:
    return ConfigError(
        "WORLD_SIZE, RANK, LOCAL_RANK, MASTER_ADDR and MASTER_PORT in the environment, as torchrun sets them",
        came=came,
        remedy="start with `torchrun --standalone --nproc-per-node N -m pellucid train ...`, or unset WORLD_SIZE",
    )


def speaks_of_loss(error: RuntimeError) -> bool:
    """Whether an error says that another process is gone."""
    return any(sign in str(error) for sign in LOST)


@contextmanager
def joined_ranks() -> Generator[Ranks]:
    """The processes that torchrun started together, as long as the block lasts; alone, nothing is done.

    Raises:
        TrainingStopped: if the others cannot be found, or one is lost on the way.
        SystemExit: if one has gone on purpose, and has said why.
    """
    ranks = launched()
    if ranks.count == 1:
        yield ranks
        return
    store = _found(ranks)
    try:
        yield ranks
        dist.barrier()  # whoever leaves while others still send is a lost one to them
    except BaseException as error:
        if not (isinstance(error, RuntimeError) and speaks_of_loss(error)):
            if isinstance(error, PellucidError) and not ranks.is_first and _is_over(store, TOGETHER):
                time.sleep(LEAVE)
                raise SystemExit(2 if isinstance(error, UserError) else 1) from error  # all saw it; the first speaks
            _say_over(store)
            raise
        if _is_over(store):
            time.sleep(LEAVE)
            raise SystemExit(1) from error
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


def _found(ranks: Ranks) -> dist.Store:
    """Make the process group; gives the store in which its members can leave a word."""
    try:
        store, _, _ = next(dist.rendezvous("env://"))
        store = of_this_attempt(store, ranks.rank, ranks.count)
        backend = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(ranks.local_rank % torch.cuda.device_count())
            backend = "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, store=store, rank=ranks.rank, world_size=ranks.count)
    except RuntimeError as error:
        raise TrainingStopped(
            f"all {ranks.count} processes to meet at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
            came=f"'{str(error).splitlines()[0]}'",
            remedy="on one machine use torchrun --standalone; on several see that this address can be reached from all",
        ) from error
    return store


def _say_over(store: dist.Store) -> None:
    with suppress(RuntimeError):
        store.set(OVER, "")


def _is_over(store: dist.Store, seconds: float = 0.0) -> bool:
    """Whether another has said why it goes, or will within so many seconds."""
    until = time.monotonic() + seconds
    with suppress(RuntimeError):  # the store was the first process's, and has gone with it
        while not store.check([OVER]):
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE)
    return True
