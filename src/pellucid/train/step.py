"""One optimizer step, counted from 1: loss and gradients of a batch, their norm, the update.

    batch ─▶ this rank's rows ─▶ [micro-batches: summed loss / scored tokens of the whole batch ─▶ backward] ─▶ sum over
    ranks ─▶ clip ─▶ update

Sums are divided once by the number of scored tokens in the whole batch, so the cut into micro-batches and ranks changes
nothing. Every rank takes as many micro-batches of the same size; where they do not divide, rows that nothing scores
fill them up. Dropout draws from a stream that begins anew at each step from (seed, step, rank): a resumed run drops
what it would have.

In: the number of a step.  Out: `StepResult`; moved weights.  Used by: trial, loop, bench.  Read next: ceiling.py.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from pellucid.data import IGNORED
from pellucid.nn import TransformerLM
from pellucid.optim import ModelOptimizer, clip_gradients
from pellucid.parallel import ALONE, Ranks, synchronised
from pellucid.train.machine import give_back_memory
from pellucid.train.variant import Loss, LossFunction

DROPOUT_STREAM = 0x5EED  # keeps the dropout's seeds apart from those of weights and batches
RANK_STREAM = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: ranks far apart


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

    def at(self, step: int) -> tuple[Tensor, ...]:
        """Inputs and targets of a step, counted from 0; of documents kept apart also their ids and positions."""
        ...

    def epochs_after(self, step: int) -> float:
        """How often the text has been read after that many steps."""
        ...


@dataclass(frozen=True)
class StepResult:
    """What a step saw, on all ranks together. `loss` is in nats per token, of the batch before the update."""

    loss: float
    tokens: int
    gradient_norm: float
    skipped: bool
    micro_batch_size: int
    """Rows computed at once: fewer than the step was made for if the memory did not suffice."""


class TrainStep:
    """Everything a step needs, put together once.

    Args:
        model: Is trained.
        loss: Its summed loss, from `loss_function`.
        optimizer: Moves its weights.
        batches: Where step s gets its rows.
        max_gradient_norm: See `clip_gradients`.
        micro_batch_size: Rows at once. Default: all of a rank's.
        seed: For dropout.
        ranks: Who shares the batch.
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
        ranks: Ranks = ALONE,
    ) -> None:
        self.model, self.loss, self.optimizer, self.batches = model, loss, optimizer, batches
        self.max_gradient_norm, self.seed, self.ranks = max_gradient_norm, seed, ranks
        share = -(-batches.batch_size // ranks.count)
        self.micro_batch_size = min(micro_batch_size or share, share)
        self.parameters = list(model.parameters())
        self.device = self.parameters[0].device

    def __call__(self, step: int, learning_rate_fraction: float) -> StepResult:
        """Take step number `step`; a loss or gradient that is not finite leaves the weights as they are.

        Where the device's memory does not suffice, fewer rows at once are tried, down to one; the step is the same.
        """
        batch = self.batches.at(step - 1)
        total, count = self._accumulate_within_memory(step, batch)
        norm = float(clip_gradients(self.parameters, self.max_gradient_norm))
        (total,) = self.ranks.sum([float(total)])
        loss = total / max(count, 1)
        skipped = not (_is_finite(loss) and _is_finite(norm))
        if not skipped:
            self.optimizer.set_learning_rate(learning_rate_fraction)
            self.optimizer.step()
        return StepResult(loss, count, norm, skipped, self.micro_batch_size)

    def _accumulate_within_memory(self, step: int, batch: tuple[Tensor, ...]) -> tuple[Tensor, int]:
        while True:
            self.optimizer.zero_grad()
            if self.model.config.dropout:
                torch.manual_seed(self.dropout_seed(step))
            try:
                return self.accumulate(*batch)
            except torch.OutOfMemoryError:  # alone: another rank would wait for this one's gradients
                if self.micro_batch_size == 1 or self.ranks.count > 1:
                    raise
            self.micro_batch_size = -(-self.micro_batch_size // 2)
            give_back_memory(self.device)

    def dropout_seed(self, step: int) -> int:
        """Where this rank's stream begins at step number `step`."""
        stream = (self.seed * 1_000_003 + step) ^ DROPOUT_STREAM  # a prime: no two pairs meet
        return (stream + self.ranks.rank * RANK_STREAM) % 2**63

    def accumulate(self, *batch: Tensor) -> tuple[Tensor, int]:
        """Add the gradients of the mean loss over the whole batch, this rank's share of them.

        Returns:
            This rank's summed loss, and the scored tokens of all ranks.
        """
        count = int((batch[1] != IGNORED).sum())
        scale = self.ranks.count / max(count, 1)  # what adds gradients up over ranks takes their mean
        total = torch.zeros((), device=self.device)
        micro_batches = list(self.micro_batches(batch))
        for number, micro_batch in enumerate(micro_batches, start=1):
            with self._synchronised(last=number == len(micro_batches)):
                part, _ = self.loss(*micro_batch)
                (part * scale).backward()
            total += part.detach()
        return total, count

    def _synchronised(self, last: bool) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext() if self.ranks.count == 1 else synchronised(cast(Loss, self.loss).module, last)

    def micro_batches(self, batch: tuple[Tensor, ...]) -> Iterator[tuple[Tensor, ...]]:
        """This rank's rows on its device, in pieces of one size; beyond its share, rows that nothing scores."""
        mine, size = self.ranks.share(len(batch[0])), self.micro_batch_size
        share = -(-len(batch[0]) // self.ranks.count)
        for first in range(mine.start, mine.start + share, size):
            rows = torch.arange(first, first + size)
            parts = [part[rows.clamp(max=len(part) - 1)] for part in batch]
            parts[1][rows >= mine.stop] = IGNORED
            yield tuple(part.to(self.device) for part in parts)


def _is_finite(number: float) -> bool:
    return number - number == 0
