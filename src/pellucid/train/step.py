"""One optimizer step, counted from 1: loss and gradients of a batch, their norm, the update.

    batch ─▶ [micro-batches: summed loss / scored tokens of the whole batch ─▶ backward] ─▶ clip ─▶ update

Sums are divided once by the number of scored tokens in the whole batch, so the cut into micro-batches changes nothing.
Dropout draws from a stream that begins anew at each step from (seed, step): a resumed run drops what it would have.

In: the number of a step.  Out: `StepResult`; moved weights.  Used by: trial, loop, bench.  Read next: ceiling.py.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pellucid.data import IGNORED
from pellucid.nn import TransformerLM
from pellucid.optim import ModelOptimizer, clip_gradients
from pellucid.train.variant import LossFunction

DROPOUT_STREAM = 0x5EED  # keeps the dropout's seeds apart from those of weights and batches


@runtime_checkable
class BatchSource(Protocol):
    """Where a step gets its rows: `data.Batches`, or whoever stands for it."""

    @property
    def batch_size(self) -> int:
        """Rows of a step."""
        ...

    @property
    def context_length(self) -> int:
        """Tokens of a row."""
        ...

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of step number `step`, counted from 0."""
        ...

    def epochs_after(self, step: int) -> float:
        """How often the text has been read after that many steps."""
        ...


@dataclass(frozen=True)
class StepResult:
    """What a step saw. `loss` is in nats per token, of the batch before the update."""

    loss: float
    tokens: int
    gradient_norm: float
    skipped: bool


class TrainStep:
    """Everything a step needs, put together once.

    Args:
        model: Is trained.
        loss: Its summed loss, from `loss_function`.
        optimizer: Moves its weights.
        batches: Where step s gets its rows.
        max_gradient_norm: See `clip_gradients`.
        micro_batch_size: Rows at once.
        seed: For dropout.
    """

    def __init__(
        self,
        model: TransformerLM,
        loss: LossFunction,
        optimizer: ModelOptimizer,
        batches: BatchSource,
        *,
        max_gradient_norm: float,
        micro_batch_size: int | None = None,
        seed: int = 0,
    ) -> None:
        self.model, self.loss, self.optimizer, self.batches = model, loss, optimizer, batches
        self.max_gradient_norm, self.seed = max_gradient_norm, seed
        self.micro_batch_size = micro_batch_size or batches.batch_size
        self.parameters = list(model.parameters())
        self.device = self.parameters[0].device

    def __call__(self, step: int, learning_rate_fraction: float) -> StepResult:
        """Take step number `step`; a loss or gradient that is not finite leaves the weights as they are."""
        inputs, targets = (part.to(self.device) for part in self.batches.at(step - 1))
        if self.model.config.dropout:
            torch.manual_seed(((self.seed * 1_000_003 + step) ^ DROPOUT_STREAM) % 2**63)  # a prime: no two pairs meet
        self.optimizer.zero_grad()
        total, count = self.accumulate(inputs, targets)
        norm = float(clip_gradients(self.parameters, self.max_gradient_norm))
        loss = float(total) / max(count, 1)
        skipped = not (_is_finite(loss) and _is_finite(norm))
        if not skipped:
            self.optimizer.set_learning_rate(learning_rate_fraction)
            self.optimizer.step()
        return StepResult(loss, count, norm, skipped)

    def accumulate(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, int]:
        """Add the gradients of the mean loss over the whole batch; returns the summed loss and the scored tokens."""
        count = int((targets != IGNORED).sum())
        total = torch.zeros((), device=inputs.device)
        micro_batches = zip(inputs.split(self.micro_batch_size), targets.split(self.micro_batch_size), strict=True)
        for some_inputs, some_targets in micro_batches:
            part, _ = self.loss(some_inputs, some_targets)
            (part / max(count, 1)).backward()
            total += part.detach()
        return total, count


def _is_finite(number: float) -> bool:
    return number - number == 0
