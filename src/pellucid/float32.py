"""Which library multiplies float32 matrices: MKL, as torch has it, or oneDNN, where that is faster and as exact.

On processors by AMD, MKL leaves half of the units idle: 113 against oneDNN's 258 GFLOP/s a core (docs/log.md). Torch
uses oneDNN for float32 only when it is told that less than float32 is enough. What oneDNN then does depends on the
processor: where it has matrix units for small floats it rounds, elsewhere it computes in full. So it is asked for one
product, and used only if that is right. Nothing is timed, so that a busy moment cannot change a run's numbers.

In: nothing.  Out: whether oneDNN is used; torch's switch, set while a block lasts.  Used by: generate, train, doctor.
Read next: train/machine.py.
"""

import platform
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

ROUNDING = 2e-6  # relative error of a product of 512 terms: 3e-7 in float32 by either library, 2e-3 in bfloat16
CPU_INFO = Path("/proc/cpuinfo")


@contextmanager
def fast_float32(onednn: bool | None = None) -> Generator[bool]:
    """Float32 products by oneDNN; afterwards torch is as it was before.

    Args:
        onednn: Whether to use it; None: where it is faster and exact.

    Yields:
        Whether it is used.
    """
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # somebody has set the precision by device: theirs to say
        yield False
        return
    chosen = prefers_onednn() if onednn is None else onednn
    torch.set_float32_matmul_precision("medium" if chosen else before)
    try:
        yield chosen
    finally:
        torch.set_float32_matmul_precision(before)


@cache
def prefers_onednn() -> bool:
    """Whether oneDNN is the faster library here, and exact."""
    return is_amd() and onednn_is_exact()


def is_amd() -> bool:
    """Whether AMD made this processor."""
    try:
        return "AuthenticAMD" in CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "AuthenticAMD" in platform.processor()  # Windows says it there


def onednn_is_exact() -> bool:
    """Whether oneDNN computes in float32 here even when told that less is enough."""
    with fast_float32(onednn=True):
        return error_of_products() <= ROUNDING


def error_of_products() -> float:
    """Relative error of a float32 product, as torch is set now.

    Example:
        >>> error_of_products() < ROUNDING
        True
    """
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(512, 512, generator=generator, dtype=torch.float64).float() for _ in "xw")
    exact = x.double() @ weight.double().T
    return float((x @ weight.T - exact).norm() / exact.norm())
