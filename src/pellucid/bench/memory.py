"""How much memory a training step needs at most, counted in tensors: the allocator's own record, not a guess.

The size of a process says little: it holds Python, libraries and whatever was freed and may be used again. Every tensor
passes through torch's allocator, which tells the profiler of each piece it gives and takes back; the highest sum over
a step, with what was held before it, is what the step needs. What kernels take for themselves is not among it.

In: an action, a model, an optimizer.  Out: bytes.  Used by: contender.  Read next: contender.py.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

MEMORY_EVENT = "[memory]"  # what torch's profiler calls a piece given (positive) or taken back (negative)


def peak_growth_bytes(action: Callable[[], object]) -> int:
    """How far above its beginning the memory of tensors on the CPU rises while `action` runs.

    Example:
        >>> peak_growth_bytes(lambda: [torch.ones(1000) for _ in range(3)])
        12000
    """
    with _silent_stderr(), profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as record:
        action()
    profiler: Any = record.profiler
    pieces = [
        event
        for event in profiler.kineto_results.events()
        if event.name() == MEMORY_EVENT and event.device_type() == DeviceType.CPU
    ]
    now = highest = 0
    for piece in sorted(pieces, key=lambda event: event.start_ns()):
        now += piece.nbytes()
        highest = max(highest, now)
    return highest


def held_bytes(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> int:
    """Weights, gradients and what optimizers remember.

    Example:
        >>> held_bytes(nn.Linear(10, 10, bias=False), [])
        400
    """
    tensors: list[Tensor] = [*model.parameters(), *model.buffers()]
    tensors += [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    for optimizer in optimizers:
        for state in optimizer.state.values():
            tensors += [value for value in state.values() if isinstance(value, Tensor)]
    return sum(tensor.nbytes for tensor in tensors)


@contextmanager
def _silent_stderr() -> Generator[None]:
    """The profiler's library writes two lines of its own about starting and stopping, past Python."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
