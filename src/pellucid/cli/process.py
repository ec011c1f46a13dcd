"""What this process is told before torch is there: how its threads wait, and that freed memory is kept.

**Waiting.** Threads that share a product wait for each other many times a step. GNU OpenMP lets them spin for a few
milliseconds, which is quickest alone; beside a busy neighbour a spinning thread keeps the core from the very thread it
waits for. `GOMP_SPINCOUNT` bounds the spinning to a fraction of a millisecond: as quick alone, and quicker in company
than spinning for long or not at all. Whoever has set a policy of their own keeps it.

**Memory.** A step frees some hundred megabytes and asks for them again. The C library gives large pieces back to the
system each time, which then fills each page with zeros anew: a quarter of a compiled step. Keeping them costs nothing
that the next step does not need anyway. Figures for both are in docs/log.md.

In: nothing.  Out: variables of this process, settings of its allocator.  Used by: main.  Read next: main.py.
"""

import ctypes
import sys
from collections.abc import Mapping, MutableMapping

SPINS = {"GOMP_SPINCOUNT": "10000"}  # rounds, about 0.2 ms; the library's own is 300,000 if nothing is said
POLICIES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""Variables by which a person may have said how threads wait."""
M_MMAP_MAX, M_TRIM_THRESHOLD = -4, -1  # numbers of glibc's malloc.h
MALLOC_VARIABLES = ("MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
NEVER = 2**31 - 1


def settle(environment: MutableMapping[str, str]) -> None:
    """Set both, where nobody has said otherwise; called before torch is imported."""
    wait_briefly(environment)
    keep_freed_memory(environment)


def wait_briefly(environment: MutableMapping[str, str]) -> None:
    """Bound the time that a thread spins while it waits.

    Example:
        >>> environment = {}
        >>> wait_briefly(environment)
        >>> environment
        {'GOMP_SPINCOUNT': '10000'}
    """
    if not any(name in environment for name in POLICIES):
        environment.update(SPINS)


def keep_freed_memory(environment: Mapping[str, str]) -> bool:
    """Have glibc keep what is freed for the next who asks; says whether it will.

    Other C libraries, and other systems, are left as they are.
    """
    if not sys.platform.startswith("linux") or any(name in environment for name in MALLOC_VARIABLES):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, NEVER))
