"""How much memory a run will need, known before any of it is taken, and what to lower where it is too much.

    program │ weights │ gradients │ optimizer │ the larger of:  activations of a micro-batch (logits among them)
                                                                the update

The step is rehearsed on torch's meta device (live_bytes.py), which takes a tenth of a second and no memory. What a
compiled step needs is near what the eager one needs, and taken for the same (docs/log.md).

In: the configuration of a run.  Out: a `MemoryEstimate`, a sentence.  Used by: assembly.  Read next: assembly.py.
"""

import os
from bisect import bisect_right
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from pellucid.model_config import ModelConfig
from pellucid.nn import CausalMultiHeadAttention, TransformerLM
from pellucid.optim import build_optimizer
from pellucid.pages.quantities import size
from pellucid.train.live_bytes import LiveBytes
from pellucid.train.variant import SummedLoss, Variant, checkpoint_activations, use_attention
from pellucid.training_config import OptimizerConfig

PROGRAM = 340_000_000  # bytes of Python, torch and what else a process holds that trains a model of nothing
HEAP = 1.15  # times the tensors a pass holds at most: what the C library keeps between them; 0.9 to 1.3 was seen
SHORTEST, NARROWEST = 16, 32  # context and width below which nobody wants to go


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """Bytes, by what holds them."""

    weights: int
    gradients: int
    optimizer: int
    """Running means, and the average of the weights where there is one."""
    activations: int
    """What a micro-batch holds at most, from its first embedding to its last gradient; logits are among it."""
    logits: int
    update: int
    """What the optimizer needs while it moves the weights."""
    program: int = PROGRAM

    @property
    def total(self) -> int:
        """At most at once."""
        kept = self.program + self.weights + self.gradients + self.optimizer
        return kept + max(self.activations, self.update)


def estimate_memory(
    config: ModelConfig,
    optimizer: OptimizerConfig,
    *,
    rows: int,
    variant: Variant,
    checkpointing: bool = False,
    averaged: bool = False,
    adapt: Callable[[TransformerLM], object] = lambda model: None,
    device: str = "cpu",
) -> MemoryEstimate:
    """What training takes at most on one device, in bytes.

    Meant for assembly: `Planned.memory_bytes` is its `total`.

    Args:
        config: The model's.
        optimizer: Whose state is counted.
        rows: Of a micro-batch.
        variant: How the step is computed.
        checkpointing: Whether blocks keep their inputs alone.
        averaged: Whether a running mean of the weights is kept.
        adapt: Puts factors beside the model's maps, if it is to have them.
        device: Where: on the CPU the C library keeps some of what it is given back.

    Example:
        >>> config = ModelConfig(vocab_size=256, d_model=64, num_heads=2, num_layers=2, context_length=64)
        >>> estimate = estimate_memory(config, OptimizerConfig(), rows=4, variant=Variant())
        >>> estimate.weights == estimate.gradients < estimate.optimizer, estimate.logits
        (True, 262144)
    """
    with torch.device("meta"):
        model = TransformerLM(config)
        adapt(model)
        ids = torch.zeros(rows, config.context_length, dtype=torch.int64)
    _attend_like(model, variant)
    if checkpointing:
        checkpoint_activations(model)
    with LiveBytes() as step, _Narrow() if variant.precision == "bfloat16" else nullcontext():
        SummedLoss(model)(ids, ids)[0].backward()
    moved = build_optimizer(model, optimizer)
    with LiveBytes() as update:
        moved.step()
    weights = sum(weight.nbytes for weight in model.parameters())
    moving = sum(weight.nbytes for weight in model.parameters() if weight.requires_grad)
    return MemoryEstimate(
        weights=weights,
        gradients=moving,
        optimizer=update.now + moving * averaged,
        activations=round((step.peak - moving) * (HEAP if device == "cpu" else 1.0)),
        logits=ids.numel() * config.vocab_size * 4,  # bytes of a float32
        update=update.peak - update.now,
        program=PROGRAM if device == "cpu" else 0,
    )


def too_much(needed: Callable[[ModelConfig, int], int], config: ModelConfig, rows: int, available: int) -> str:
    """What to lower, and to what, where the memory does not suffice; empty where it does.

    First the micro-batch, which changes no number; if one row is too much, the context; then the width.

    Meant for assembly, before anything large is made, with `available_bytes`; its sentence stops the run or warns.

    Args:
        needed: Bytes for a model and a number of rows, from `estimate_memory`.
        config: The model's.
        rows: Of a micro-batch.
        available: Bytes.

    Example:
        >>> a_megabyte_a_token = lambda config, rows: rows * config.context_length * 10**6
        >>> too_much(a_megabyte_a_token, ModelConfig(context_length=256), 16, 10**9)
        'about 4.1 GB are needed and 1.0 GB are free: lower --micro-batch-size to 3'
    """
    whole = needed(config, rows)
    if whole <= available:
        return ""
    told = f"about {size(whole)} are needed and {size(available)} are free: lower "
    # The first number of rows that is too many is looked for by halves; the one before it fits.
    fewer = bisect_right(range(1, rows), available, key=lambda some: needed(config, some))
    if fewer:
        return f"{told}--micro-batch-size to {fewer}"
    told += "--micro-batch-size to 1 and " if rows > 1 else ""
    shorter = config
    while shorter.context_length // 2 >= SHORTEST:
        shorter = replace(shorter, context_length=shorter.context_length // 2)
        if needed(shorter, 1) <= available:
            return f"{told}--model.context-length to {shorter.context_length}"
    narrower = config
    while narrower.d_model // 2 >= NARROWEST:
        narrower = _half_as_wide(narrower)
        if needed(narrower, 1) <= available:
            return f"{told}--model.d-model to {narrower.d_model}"
    return f"{told}--model.num-layers, --model.d-model and --vocab-size: nothing of this kind fits"


def available_bytes(device: torch.device) -> int | None:
    """Memory that nobody uses, on a graphics card or in this machine, a container's limit included; None: unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    limits = [_free_of_the_machine(), _left_of_the_container()]
    return min((limit for limit in limits if limit is not None), default=None)


def _free_of_the_machine() -> int | None:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # no such name, or nothing known: Windows, old systems
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _left_of_the_container() -> int | None:
    """Under control groups, version 2: a limit is a number, or the word max."""
    with suppress(OSError, ValueError):
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text(encoding="ascii") for name in ("max", "current"))
        return int(limit) - int(used)
    return None


def _half_as_wide(config: ModelConfig) -> ModelConfig:
    """The same shape with half the width, and half as many heads where there are several."""
    heads = max(1, config.num_heads // 2)
    sizes = {
        "d_model": config.d_model // 2,
        "d_ff": max(1, (config.d_ff or 4 * config.d_model) // 2),
        "num_heads": heads,
        "num_kv_heads": heads,
    }
    return replace(config, **sizes)


def _attend_like(model: TransformerLM, variant: Variant) -> None:
    """Attention as the variant computes it; what a fused kernel holds is said, since it has none on the meta device."""
    use_attention(model, variant)
    if variant.attention == "fused":
        model.use_fused_attention(False)
        for module in model.modules():
            if isinstance(module, CausalMultiHeadAttention):
                module.written_out = _fused


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, **_how: Any) -> Tensor:
    return _Fused.apply(query, key, value)


class _Fused(torch.autograd.Function):
    """Holds what a fused kernel holds: what goes in, what comes out, and a number a query; never the weights."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        out = torch.empty_like(query)
        ctx.save_for_backward(query, key, value, out, query.new_empty(query.shape[:-1], dtype=torch.float32))
        return out

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        return tuple(torch.empty_like(one) for one in ctx.saved_tensors[:3])


class _Narrow(TorchFunctionMode):
    """Products in bfloat16, as by autocast, which the meta device does not have."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.__matmul__, Tensor.matmul, torch.matmul, functional.linear):
            args = [one.bfloat16() if isinstance(one, Tensor) else one for one in args]
        return func(*args, **(kwargs or {}))
