"""What every contender is given: the same sizes, first weights, tokens, and optimizer settings.

In: sizes.  Out: `TrainingLoad`, which makes models and batches.  Used by: plain, contender, train_speed.
Read next: plain.py.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM, initialize
from pellucid.nn.initialize import Scheme
from pellucid.optim import build_optimizer
from pellucid.train.step import TrainStep
from pellucid.train.variant import LossFunction
from pellucid.training_config import OptimizerConfig

LEARNING_RATE = 1e-3  # for everything under AdamW; nobody looks at the loss but to see that all have the same
NEVER_CLIPS = 1e9  # ours measures the norm of every step, as in training; the plain loop does not even look


@dataclass(frozen=True, kw_only=True)
class TrainingLoad:
    """A training step to be measured; it also stands for `data.Batches`, with tokens that are made up."""

    config: ModelConfig
    batch_size: int
    optimizer: OptimizerConfig
    initialization: Scheme
    seed: int = 0

    @property
    def context_length(self) -> int:
        """Tokens of a row."""
        return self.config.context_length

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch_size * self.context_length

    def model(self) -> TransformerLM:
        """A model with the weights that all contenders begin with."""
        return initialize(TransformerLM(self.config), self.initialization, seed=self.seed)

    def train_step(self, model: TransformerLM, loss: LossFunction) -> TrainStep:
        """A step of ours, with a new optimizer."""
        optimizer = build_optimizer(model, self.optimizer)
        return TrainStep(model, loss, optimizer, self, max_gradient_norm=self.optimizer.max_gradient_norm)

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets: a sequence that can be learned, since each token depends on the one before."""
        generator = torch.Generator().manual_seed(self.seed + step)
        shape = (self.batch_size, self.context_length + 1)
        jumps = torch.randint(0, 3, shape, generator=generator)  # 3: of all tokens, these may follow
        rows = jumps.cumsum(1).remainder(self.config.vocab_size)
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def epochs_after(self, step: int) -> float:
        """No text is read."""
        return 0.0


def adamw() -> OptimizerConfig:
    """One AdamW for every weight, as a plain loop has it."""
    return OptimizerConfig(
        matrix_algorithm="adamw",
        matrix_learning_rate=LEARNING_RATE,
        embedding_learning_rate=LEARNING_RATE,
        head_learning_rate=LEARNING_RATE,
        vector_learning_rate=LEARNING_RATE,
        beta2=0.999,  # torch.optim.AdamW's
        max_gradient_norm=NEVER_CLIPS,
    )
