"""The machine as a run uses it: threads, float32 products, algorithms that repeat themselves, and memory that ends.

In: a number of threads.  Out: torch's switches, set while a block lasts.  Used by: run, bench.  Read next: assembly.py.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from pellucid.errors import ConfigError
from pellucid.float32 import fast_float32

try:
    import resource
except ImportError:  # Windows does not count so
    resource = None


@contextmanager
def reproducible(threads: int | None, *, onednn: bool | None = False) -> Generator[None]:
    """Fixed threads and reproducible algorithms; afterwards torch is as it was before.

    Compiled steps, and the gradient of looking rows up, are not reproducible on two threads without the switch. Torch
    would then also fill every new tensor with NaN, to show who reads what nobody wrote: 5 to 15 % of a small eager
    step. Nobody does here, so that is off.

    Args:
        threads: How many; None leaves them as they are.
        onednn: Whether oneDNN multiplies float32 matrices; None: where it is faster and exact (float32.py).
    """
    deterministic: Any = torch.utils.deterministic
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filled = deterministic.fill_uninitialized_memory
    torch.set_num_threads(threads or before[0])
    torch.use_deterministic_algorithms(True)
    deterministic.fill_uninitialized_memory = False
    try:
        with fast_float32(onednn):
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])
        deterministic.fill_uninitialized_memory = filled


def peak_memory_bytes(device: torch.device) -> int | None:
    """The most memory this process has held so far, on a graphics card what torch has; None where nobody counts."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # Linux counts in kilobytes


def give_back_memory(device: torch.device) -> None:
    """Let others have the memory of a device that this process holds and does not use."""
    if device.type != "cpu":  # where torch holds none back
        torch.accelerator.empty_cache()


@contextmanager
def memory_in_a_sentence() -> Generator[None]:
    """Say what to lower when the memory does not suffice.

    Raises:
        ConfigError: instead of torch's error about an allocation.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, torch.OutOfMemoryError | MemoryError) and "allocate memory" not in str(error):
            raise
        raise ConfigError(
            "a model and a batch that fit into the memory",
            came=f"an allocation that failed ({' '.join(str(error).split())[-100:]})",  # its end names the bytes
            remedy="lower micro_batch_size, which changes no number, or else context_length or d_model",
        ) from error
