"""How fast this machine multiplies matrices: what a training step is measured against.

Nearly all the work of a step is in products of matrices, so the rate of one large product, alone and undisturbed, is a
ceiling for the rate of the whole. A step that reaches half of it is good.

In: a number type, a size.  Out: products and sums per second.  Used by: trial, bench, doctor.  Read next: device.py.
"""

import time
from collections.abc import Callable

import torch

CEILING_SIZE = 1536  # rows and columns: big enough for the full rate, 7 GFLOP, 10 to 50 ms on two cores


def seconds(action: Callable[[], object], *, at_least: int = 3, budget: float = 1.0) -> float:
    """Median duration of an action, repeated until the budget is used, at least `at_least` times."""
    durations: list[float] = []
    while len(durations) < at_least or sum(durations) < budget:
        begun = time.perf_counter()
        action()
        durations.append(time.perf_counter() - begun)
    return sorted(durations)[len(durations) // 2]


class Product:
    """x W^T in one number type, made once and taken as often as asked.

    Args:
        precision: float32 or bfloat16.
        rows: Of x.
        d_in: Columns of x and of W.
        d_out: Rows of W.
        device: Where.
    """

    def __init__(
        self,
        precision: str,
        rows: int = CEILING_SIZE,
        d_in: int = CEILING_SIZE,
        d_out: int = CEILING_SIZE,
        device: str = "cpu",
    ) -> None:
        kind = {"dtype": getattr(torch, precision), "device": device}
        self.x, self.weight = torch.ones(rows, d_in, **kind), torch.ones(d_out, d_in, **kind)
        self.flop = 2 * rows * d_in * d_out
        self()  # the first product sets the library up

    def __call__(self) -> None:
        """Take the product, and wait for it."""
        product = self.x @ self.weight.T
        if product.device.type != "cpu":
            product[0, 0].item()

    def flop_per_second(self, budget: float = 0.05) -> float:
        """The rate, by the median of several products.

        Example:
            >>> Product("float32", 8, 8, 8).flop_per_second(budget=0) > 0
            True
        """
        return self.flop / seconds(self, budget=budget)


def product_speedup(rows: int, d_in: int, d_out: int) -> float:
    """How many times faster this processor multiplies matrices of these sizes in bfloat16 than in float32."""
    narrow, wide = (Product(kind, rows, d_in, d_out).flop_per_second() for kind in ("bfloat16", "float32"))
    return narrow / wide
