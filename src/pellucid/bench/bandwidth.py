"""How fast this machine reads memory, which is what bounds a model that writes one token at a time.

In: nothing.  Out: bytes per second.  Used by: generate_speed.  Read next: writers.py.
"""

import time

import torch

MEASURED_BYTES = 512 << 20  # past any cache
TIMES = 7


def read_bytes_per_second(num_bytes: int = MEASURED_BYTES) -> float:
    """The best of some readings of a long array, by all of torch's threads.

    Example:
        >>> read_bytes_per_second(1 << 20) > 1e8
        True
    """
    numbers = torch.ones(num_bytes // 4)
    seconds = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        numbers.sum()
        seconds.append(time.perf_counter() - begun)
    return num_bytes / min(seconds)
