"""Is a variant of the step right?

Right means: on one batch and weights that are not small, the loss and every gradient are finite and equal to those of
the plain way, eager and float32, within the bound of the number type. A variant that is not right is not used, however
fast: on some processors compiled bfloat16 has given NaN gradients for queries and keys (docs/log.md).

In: a model, a batch, a `Variant`.  Out: why it is wrong, or nothing.  Used by: trial, bench, doctor.
Read next: step.py.
"""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor

from pellucid.lora import adapted_maps
from pellucid.nn import TransformerLM, initialize
from pellucid.train.variant import LossFunction, Variant, loss_function

Batch = tuple[Tensor, ...]
"""Inputs and targets, and for packed documents their ids and positions."""
Reference = tuple[float, dict[str, Tensor]]

LOSS_BOUND = {"float32": 1e-4, "bfloat16": 1e-2}  # relative; bfloat16 keeps 8 bits, its error averages out in a loss
GRADIENT_BOUND = {"float32": 1e-3, "bfloat16": 0.1}  # |g - g'| / |g'| of each parameter; seen: 1e-5, 0.03
FILLED = 0.6  # times 1 / √3: factors' products beside fresh weights; SmolLM2 keeps 4.3 nats of 3.6, and had 14.6 at 2.0


@contextmanager
def probing(model: TransformerLM, *, has_learned: bool = False) -> Generator[TransformerLM]:
    """The model with ordinary random weights and no dropout; afterwards its own weights and mode are back.

    Weights of a fresh run may be zero where a gradient would have to pass, and then every gradient agrees. Those of a
    model that has learned are what the step must be right for, and stay.
    """
    kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if not has_learned:
        initialize(model, "course", seed=0)
    _fill_factors(model)
    model.train(not model.config.dropout)  # a model without dropout need not be compiled once more for another mode
    try:
        yield model
    finally:
        model.train()
        model.load_state_dict(kept)
        model.zero_grad()


@torch.no_grad()
def _fill_factors(model: TransformerLM) -> None:
    """Factors that begin with zeros would hide the gradients of those they are multiplied by.

    They are filled so that a model that has learned still knows what it knew: what it computes amid noise as large as
    its weights, no number type computes alike.
    """
    stream = torch.Generator().manual_seed(0)
    for _, adapted in adapted_maps(model):
        for name, factor in adapted.factors.named_parameters():
            if name.endswith(".widen"):
                std = FILLED / adapted.scaling * factor.shape[-1] ** -0.5
                factor.copy_(torch.empty(factor.shape).normal_(std=std, generator=stream))


def loss_and_gradients(model: TransformerLM, loss: LossFunction, batch: Batch) -> Reference:
    """The mean loss of a batch and its gradient by parameter name."""
    model.zero_grad()
    total, count = loss(*batch)
    mean = total / count.clamp(min=1)
    mean.backward()
    return float(mean.detach()), {
        name: p.grad.detach().clone() for name, p in model.named_parameters() if p.grad is not None
    }


def reference(model: TransformerLM, batch: Batch) -> Reference:
    """What every variant must reproduce: eager, float32, attention written out."""
    return loss_and_gradients(model, loss_function(model, Variant()), batch)


def difference(found: Reference, expected: Reference, precision: str) -> str:
    """Say what is wrong with a loss and its gradients; empty if nothing is.

    Args:
        found: The variant's.
        expected: The reference's.
        precision: Whose bound holds.
    """
    (loss, gradients), (true_loss, true_gradients) = found, expected
    if not abs(loss - true_loss) <= LOSS_BOUND[precision] * abs(true_loss):
        return f"its loss is {loss:.4f}, and should be {true_loss:.4f}"
    for name, true in true_gradients.items():
        if name not in gradients:
            return f"{name} gets no gradient"
        if not bool(gradients[name].isfinite().all()):
            return f"the gradient of {name} is not finite"
        error = float((gradients[name] - true).norm() / true.norm().clamp(min=1e-12))  # all-zero gradients agree
        if not error <= GRADIENT_BOUND[precision]:
            return f"the gradient of {name} is off by {error:.1%}"
    return ""
