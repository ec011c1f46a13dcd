"""Muon: momentum whose every direction is made equally long before it is applied.

A gradient matrix is dominated by a few directions. Muon replaces the momentum U S V^T by nearly U V^T, so that rare
directions move as far as common ones. The singular values are never computed: an odd polynomial of the matrix drives
them all towards 1, and that takes matrix products only.

In: gradients of two-dimensional parameters.  Out: updated parameters.  Used by: groups.py.  Read next: schedule.py.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pellucid.errors import ConfigError
from pellucid.optim.sharded import cut_like, is_cut, whole

QUINTIC = (3.4445, -4.7750, 2.0315)  # Keller Jordan 2024: steepest at 0 that keeps [0, 1] within about [0.7, 1.2]
EPSILON = 1e-7  # norms below this count as zero; torch.optim.Muon's value
GRAM_STEPS = 3  # then the Gram matrix is taken afresh: three steps cost no digit, five cost two (measured)
GRAM_RATIO = 1.5  # 2 m^3 (5 + 2 n/m) against 2 m^3 (2 + 4 n/m) for two steps on m x n: the Gram form is cheaper above
CPU_STACK = 200_000  # elements handled together: 0.8 MB of float32, well inside a core's cache; 10 % faster than 3 MB
ACCELERATOR_STACK = 64_000_000  # elements handled together: 256 MB of float32, so that memory stays bounded


@torch.no_grad()
def orthogonalise(
    matrices: Float[Tensor, "*batch row column"], steps: int = 5, precision: str = "float32"
) -> Float[Tensor, "*batch row column"]:
    """Bring all singular values of each matrix near 1, keeping its singular vectors: U S V^T to about U V^T.

    X = M / |M|, then `steps` times:  X = a X + b (X X^T) X + c (X X^T)^2 X   with (a, b, c) = QUINTIC

    Each step acts on every singular value alone, s to a s + b s^3 + c s^5, and leaves them between about 0.7 and 1.2.
    It is exact neither in theory nor here, and need not be.

    Args:
        matrices: One matrix, or a stack of them; each is treated alone.
        steps: How often the polynomial is applied.
        precision: float32 (or wider, if the matrices are); bfloat16 multiplies in bfloat16.

    Returns:
        As many matrices, in float32 or wider. A matrix of zeros stays zero.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"; Bernstein & Newhouse 2024.
        torch.optim.Muon iterates in bfloat16 and one matrix at a time.

    Example:
        >>> singular_values = torch.linalg.svdvals(orthogonalise(torch.randn(8, 32)))
        >>> bool(((singular_values > 0.6) & (singular_values < 1.3)).all())
        True
    """
    x = matrices.to(torch.promote_types(matrices.dtype, torch.float32))
    small, large = sorted(x.shape[-2:])
    flat = (x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=EPSILON)).reshape(-1, *x.shape[-2:])
    if precision == "bfloat16":
        flat = _iterate(flat.bfloat16(), steps).to(x.dtype)
    else:
        flat = _iterate_gram(flat, steps) if large >= GRAM_RATIO * small else _iterate(flat, steps)
    return flat.view_as(x)


def _iterate(x: Float[Tensor, "batch row column"], steps: int) -> Float[Tensor, "batch row column"]:
    """The definition: X = (a I + b G + c G^2) X with G = X X^T; from the right with G = X^T X where that is smaller."""
    a, b, c = QUINTIC
    tall = x.shape[1] > x.shape[2]
    for _ in range(steps):
        gram = x.mT @ x if tall else x @ x.mT
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, x, factor, beta=a) if tall else torch.baddbmm(x, factor, x, beta=a)
    return x


def _iterate_gram(x: Float[Tensor, "batch row column"], steps: int) -> Float[Tensor, "batch row column"]:
    """The same for oblong matrices, on the small side: the factors P = a I + b G + c G^2 are polynomials of one matrix.

    They commute, so G goes to P G P and X is multiplied once by their product. Rounding errors of G grow about
    twelvefold a step in the smallest directions, hence G is taken afresh from X after `GRAM_STEPS`.
    """
    a, b, c = QUINTIC
    tall = x.shape[1] > x.shape[2]
    while steps > 0:
        gram = x.mT @ x if tall else x @ x.mT
        product = None
        for remaining in reversed(range(min(steps, GRAM_STEPS))):
            factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
            factor.diagonal(dim1=-2, dim2=-1).add_(a)
            product = factor if product is None else factor @ product
            if remaining:
                gram = factor @ (gram @ factor)
        x = x @ product if tall else product @ x
        steps -= GRAM_STEPS
    return x


def update_factor(update_scale: str, rows: int, columns: int) -> float:
    """What the orthogonalised update of a matrix is multiplied by, beside the learning rate.

    original: sqrt(max(1, rows / columns)), so that a tall matrix changes its outputs as much as a square one.
    match_rms_adamw: 0.2 sqrt(max(rows, columns)), so that learning rates tuned for AdamW fit. none: 1.

    Source: Jordan et al. 2024; Liu et al. 2025, "Muon is scalable for LLM training", section 2.2.

    Example:
        >>> update_factor("original", 512, 128), update_factor("match_rms_adamw", 25, 100)
        (2.0, 2.0)
    """
    match update_scale:
        case "original":
            return math.sqrt(max(1, rows / columns))
        case "match_rms_adamw":
            return 0.2 * math.sqrt(max(rows, columns))  # 0.2: the usual root mean square of an AdamW update
        case "none":
            return 1.0
    raise ConfigError("update_scale original, match_rms_adamw or none", came=repr(update_scale), remedy="choose one")


class Muon(torch.optim.Optimizer):
    """Muon with float32 iterations, and fused matrices taken apart, and equal shapes handled together.

    B = momentum B + (1 - momentum) G
    U = (1 - momentum) G + momentum B            (Nesterov; otherwise U = B)
    W = W (1 - lr weight_decay) - lr factor(shape) orthogonalise(U)

    A fused matrix holds several maps one above the other. Orthogonalised whole, a loud one would silence its
    neighbours; `row_slices` says where to cut. Slices of equal shape, from whatever layer, go through one batched
    product.

    Args:
        params: Two-dimensional parameters, or groups of them. A group may set `row_slices`.
        lr: Learning rate.
        weight_decay: Decoupled: the share lr * weight_decay of a weight is taken away each step.
        momentum: How much of the running mean is kept.
        nesterov: Look one step ahead along the new mean.
        steps: Steps of the orthogonalisation.
        update_scale: See `update_factor`; the shape that counts is a slice's.
        precision: What the orthogonalisation multiplies in. bfloat16 is two to four times faster where a processor has
            units for it, but rounds so coarsely that equal work cut otherwise gives losses 1e-4 apart (float32: 5e-7).

    Raises:
        ConfigError: a parameter that is not a matrix, or slices that do not add up to its rows.

    Source: Jordan et al. 2024. `torch.optim.Muon` is the same for one unsliced matrix, up to its bfloat16.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(6, 4))
        >>> optimizer = Muon([{"params": [weight], "row_slices": (2, 2, 2)}], lr=0.1)
        >>> weight.grad = torch.randn(6, 4)
        >>> optimizer.step()
        >>> bool(weight.any())
        True
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.02,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        nesterov: bool = True,
        steps: int = 5,
        update_scale: str = "original",
        precision: str = "float32",
    ) -> None:
        update_factor(update_scale, 1, 1)
        if precision not in ("float32", "bfloat16"):
            raise ConfigError("precision float32 or bfloat16", came=repr(precision), remedy="choose one")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "steps": steps,
                "update_scale": update_scale,
                "precision": precision,
                "row_slices": None,
            },
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, having checked that Muon can train it."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for parameter in group["params"]:
            if parameter.ndim != 2:
                raise ConfigError(
                    "matrices, parameters of two axes",
                    came=f"one of shape {tuple(parameter.shape)}",
                    remedy="leave it to AdamW",
                )
            if group["row_slices"] is not None and sum(group["row_slices"]) != parameter.shape[0]:
                raise ConfigError(
                    f"row_slices that add up to {parameter.shape[0]} rows",
                    came=f"{tuple(group['row_slices'])}, which is {sum(group['row_slices'])}",
                    remedy="give one number of rows for each map in the fused matrix",
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient. A closure, if given, is evaluated first and its value returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        jobs: dict[tuple, list[tuple[Tensor, Tensor, float]]] = defaultdict(list)
        moves: list[tuple[Tensor, Tensor]] = []
        for group in self.param_groups:
            self._advance(group, jobs, moves)
        for (steps, precision, *_), slices in jobs.items():
            _apply(slices, steps, precision)
        for parameter, move in moves:
            parameter.add_(cut_like(move, parameter))
        return loss

    def _advance(self, group: dict[str, Any], jobs: dict[tuple, list], moves: list[tuple[Tensor, Tensor]]) -> None:
        """Momentum and weight decay of a group, and its slices sorted by shape into `jobs`.

        Only whole matrices can be orthogonalised. Of one that is cut over ranks the update is gathered and worked out
        on every rank, as a move of its own in `moves`, of which each rank then takes its part.
        """
        parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
        if not parameters:
            return
        gradients = [p.grad.to(torch.promote_types(p.grad.dtype, torch.float32)) for p in parameters]
        means = [self._mean_of(p, g) for p, g in zip(parameters, gradients, strict=True)]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        updates = torch._foreach_lerp(gradients, means, group["momentum"]) if group["nesterov"] else means
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        for parameter, update in zip(parameters, updates, strict=True):
            cuts = group["row_slices"] or parameter.shape[0]
            moved = parameter
            if is_cut(parameter):
                update = whole(update)
                moved = torch.zeros_like(update)
                moves.append((parameter, moved))
            for target, part in zip(moved.split(cuts), update.split(cuts), strict=True):
                rows, columns = part.shape
                distance = group["lr"] * update_factor(group["update_scale"], rows, columns)
                kind = (group["steps"], group["precision"], rows, columns, part.dtype, part.device)
                jobs[kind].append((target, part, distance))

    def _mean_of(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        return state["momentum"]


def _apply(slices: list[tuple[Tensor, Tensor, float]], steps: int, precision: str) -> None:
    """Orthogonalise slices of one shape, as many at once as the cache holds, and subtract them from their targets."""
    part = slices[0][1]
    together = max(1, (CPU_STACK if part.device.type == "cpu" else ACCELERATOR_STACK) // part.numel())
    for first in range(0, len(slices), together):
        chunk = slices[first : first + together]
        directions = orthogonalise(torch.stack([part for _, part, _ in chunk]), steps, precision)
        for (target, _, distance), direction in zip(chunk, directions.unbind(), strict=True):
            target.sub_(direction, alpha=distance)
