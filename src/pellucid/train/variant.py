"""The ways to compute one and the same step: number type, attention path, compiled or not.

Which is fastest depends on the processor and on the size of the model; which is *right* is shown before any is used
(probe.py). A variant is chosen once per run and recorded; a resumed run uses it again.

In: a model.  Out: a function from batches to the summed loss.  Used by: probe, step, bench.  Read next: probe.py.
"""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pellucid.loss import chunked_cross_entropy, chunking_pays, summed_cross_entropy
from pellucid.nn import CausalMultiHeadAttention, TransformerLM, scaled_dot_product_attention
from pellucid.parallel import is_sharded
from pellucid.train.one_program import OneProgram
from pellucid.train.tiles import tiled_attention

LossFunction = Callable[..., tuple[Tensor, Tensor]]
"""From a batch (see `SummedLoss`) to its summed loss and the number of scored tokens."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to compute the step.

    Example:
        >>> str(Variant(precision="bfloat16", attention="written-out", compiled=True))
        'bfloat16, written-out attention, compiled'
        >>> Variant.parse(str(Variant())) == Variant()
        True
    """

    precision: str = "float32"
    """float32, or bfloat16 by autocast: weights stay in float32, products are taken in bfloat16."""
    attention: str = "written-out"
    """written-out (scores, softmax, weighted mean), tiled (the same for some queries at a time), or fused (torch's)."""
    compiled: bool = False
    """Whether torch.compile makes one program of the loss and its gradients."""

    def __str__(self) -> str:
        return f"{self.precision}, {self.attention} attention, {'compiled' if self.compiled else 'eager'}"

    @classmethod
    def parse(cls, text: str) -> "Variant":
        """The variant that `str` wrote."""
        precision, attention, how = text.split(", ")
        return cls(precision=precision, attention=attention.removesuffix(" attention"), compiled=how == "compiled")


class SummedLoss(nn.Module):
    """Token ids and targets in, summed loss and number of scored tokens out.

    The loss is inside a module's forward so that a wrapper for many processes can stand around all of it.

    Args:
        model: The language model.
    """

    def __init__(self, model: TransformerLM) -> None:
        super().__init__()
        self.model = model
        self.in_chunks = not is_sharded(model)  # which gathers the head's weights around the model's forward alone

    def forward(
        self,
        inputs: Int64[Tensor, "row position"],
        targets: Int64[Tensor, "row position"],
        document_ids: Int64[Tensor, "row position"] | None = None,
        positions: Int64[Tensor, "row position"] | None = None,
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Score every token of the batch; packed documents do not see each other if their ids are given."""
        rows = {"document_ids": document_ids, "positions": positions}
        if not self.in_chunks or not chunking_pays(targets.numel(), self.model.config.vocab_size):
            return summed_cross_entropy(self.model(inputs, **rows), targets)
        hidden, head, config = self.model.hidden_states(inputs, **rows), self.model.lm_head, self.model.config
        how = {"bias": head.bias, "soft_cap": config.logit_soft_cap, "num_unused_ids": config.num_unused_ids}
        return chunked_cross_entropy(hidden, head.weight, targets, **how)


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Where products are taken in `precision`; float32 changes nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


def use_attention(model: TransformerLM, variant: Variant) -> None:
    """Have the model compute its attention the way `variant` says."""
    model.use_fused_attention(variant.attention == "fused")
    for module in model.modules():
        if isinstance(module, CausalMultiHeadAttention):
            module.written_out = tiled_attention if variant.attention == "tiled" else scaled_dot_product_attention


def checkpoint_activations(model: TransformerLM) -> None:
    """Have each block keep its input alone, and compute the rest again when its gradient is asked for."""
    for block in model.blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)


def checkpoints_activations(model: TransformerLM) -> bool:
    """Whether the model's blocks are computed again for their gradients."""
    return any(isinstance(block.forward, functools.partial) for block in model.blocks)


class Loss:
    """The summed loss of a batch, as `loss_function` has put it together; `module` computes it.

    Args:
        module: What is called: the loss, perhaps compiled, perhaps wrapped for many processes.
        precision: What products are taken in.
    """

    def __init__(self, module: nn.Module, precision: str) -> None:
        self.module, self.precision = module, precision

    def __call__(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
        """The summed loss and the number of scored tokens."""
        # Outside of what is compiled: a program with autocast inside is not kept, and is traced anew in each process.
        with autocast(self.precision, batch[0].device):
            return self.module(*batch)


def loss_function(model: TransformerLM, variant: Variant) -> Loss:
    """The summed loss of `model`, computed the way `variant` says.

    The model itself is shared and not changed, but for its choice of attention path. A sharded model is compiled block
    by block, between which its weights are gathered, and has its own number type for products.
    """
    use_attention(model, variant)
    summed = SummedLoss(model)
    if is_sharded(model):
        for block in model.blocks if variant.compiled else ():
            block.compile(dynamic=False)
        return Loss(summed, "float32")
    if not variant.compiled:
        return Loss(summed, variant.precision)
    if checkpoints_activations(model):  # which a gradient taken inside of a program cannot do
        return Loss(cast(nn.Module, torch.compile(summed, dynamic=False)), variant.precision)
    return Loss(OneProgram(summed), variant.precision)
