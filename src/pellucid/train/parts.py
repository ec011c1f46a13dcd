"""What a run is made of before anyone knows how fast it goes.

In: a run folder, its material, a model.  Out: a `TrainStep`, a `Loop`.  Used by: assembly.  Read next: assembly.py.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pellucid.checkpoint import RunFolder
from pellucid.data import Batches, ChatBatches, check_vocabulary
from pellucid.nn import TransformerLM
from pellucid.optim import WeightAverage, build_optimizer
from pellucid.parallel import ALONE, Ranks, is_sharded, replicated, shard
from pellucid.train.evaluation import evaluate
from pellucid.train.events import Observer
from pellucid.train.eyes import Eyes
from pellucid.train.keeper import Keeper
from pellucid.train.loop import Loop
from pellucid.train.material import Material
from pellucid.train.sample import Sampler
from pellucid.train.step import TrainStep
from pellucid.train.variant import Loss, LossFunction, Variant, loss_function
from pellucid.training_config import OptimizerConfig, TrainingConfig
from pellucid.yardsticks import Score


@dataclass(kw_only=True)
class Parts:
    """A run's parts, the same on every rank."""

    folder: RunFolder
    material: Material
    model: TransformerLM
    batches: Batches | ChatBatches
    training: TrainingConfig
    sampler: Sampler
    observe: Observer
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    ranks: Ranks = ALONE
    loss: LossFunction | None = None
    """As it was tried out, if it was: a compiled one need not be compiled again."""

    def __post_init__(self) -> None:
        check_vocabulary(self.material.data.train, self.model.config.vocab_size)
        if self.training.shard and self.ranks.count > 1:
            shard(self.model, self.ranks, _product_type(self.training, self.model))

    def train_step(self, variant: Variant) -> TrainStep:
        """A step of all ranks, with a new optimizer."""
        loss = self.loss or loss_function(self.model, variant)
        if self.ranks.count > 1 and not is_sharded(self.model):
            loss = Loss(replicated(cast(Loss, loss).module), cast(Loss, loss).precision)
        step = self._step(loss, self.ranks)
        if self.training.ema:
            step.optimizer.average = WeightAverage(self.model, self.training.ema)
        return step

    def rehearsal(self, loss: LossFunction) -> TrainStep:
        """A step of this rank's share alone, to be timed."""
        return self._step(loss, self.ranks.rehearsing() if self.ranks.count > 1 else self.ranks)

    def _step(self, loss: LossFunction, ranks: Ranks) -> TrainStep:
        return TrainStep(
            self.model,
            loss,
            build_optimizer(self.model, self.optimizer),
            self.batches,
            max_gradient_norm=self.optimizer.max_gradient_norm,
            micro_batch_size=self.training.micro_batch_size,
            seed=self.training.seed,
            ranks=ranks,
        )

    def evaluate(self) -> Score | None:
        """The held-out score, if anything is held out.

        Ranks that hold the whole model share the passages; those of a model that is cut go through all together.
        """
        data, tokenizer = self.material.data, self.material.tokenizer
        how = {"end_of_text_id": tokenizer.end_of_text_id, "start_id": tokenizer.start_id}
        how["context_length"] = self.batches.context_length
        if self.ranks.count == 1 or is_sharded(self.model) or not data.held_out:
            return evaluate(self.model, data, **how)
        mine = slice(self.ranks.rank, None, self.ranks.count)
        bits = [0.0] * len(data.held_out)
        if score := evaluate(self.model, replace(data, held_out=data.held_out[mine]), **how):
            bits[mine] = score.bits
        return Score("model", tuple(self.ranks.sum(bits)), tuple(piece.characters for piece in data.held_out))

    def sample(self) -> tuple[str, str]:
        """The prompt, and what the model makes of it; the first rank writes, unless the model is cut over all."""
        if not self.ranks.is_first and not is_sharded(self.model):
            return self.sampler.prompt, ""
        return self.sampler.prompt, self.sampler(self.model)

    def time_pause(self) -> tuple[float, Score | None]:
        """Seconds that an evaluation with its sample takes; and its score, of a model that had learned before."""
        begun = time.monotonic()
        score = self.evaluate()
        self.sample()
        return time.monotonic() - begun, score if "from" in self.folder.facts else None

    def loop(self, variant: Variant, **rest: Any) -> Loop:
        """The loop over these parts; `rest` are its other fields."""
        train_step = self.train_step(variant)
        progress = rest["progress"]
        progress.micro_batch_size = train_step.micro_batch_size
        return Loop(
            train_step=train_step,
            eyes=Eyes(
                observe=self.observe,
                train_step=train_step,
                loss=loss_function(self.model, replace(variant, compiled=False)),
                interval=self.training.health_interval,
            ),
            keeper=Keeper(
                folder=self.folder,
                model=self.model,
                optimizer=train_step.optimizer,
                ranks=self.ranks,
                keep_more=self.training.keep,
            ),
            bits_per_nat=self.material.bits_per_nat,
            evaluate=self.evaluate,
            sample=self.sample,
            observe=self.observe,
            **rest,
        )


def _product_type(training: TrainingConfig, model: TransformerLM) -> str:
    """What a sharded model's products are taken in; nothing is tried out, since no rank could do it alone."""
    if training.precision != "auto":
        return training.precision
    return "bfloat16" if next(model.parameters()).device.type == "cuda" else "float32"
