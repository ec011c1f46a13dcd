"""A run with every part in place: built new with a trial, or again from its folder without one.

In: a request and its material, or a run folder and a checkpoint.  Out: a `Loop`.  Used by: run.  Read next: run.py.
"""

import math
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pellucid.checkpoint import Checkpoint, RunFolder, load_weights
from pellucid.data import Batches, check_vocabulary
from pellucid.nn import TransformerLM, initialize
from pellucid.optim import build_optimizer
from pellucid.train import facts
from pellucid.train.device import Capabilities, check_device
from pellucid.train.evaluation import evaluate
from pellucid.train.events import Observer, Planned
from pellucid.train.loop import Loop
from pellucid.train.material import Material
from pellucid.train.plan import affordable_evaluations, last_step_at, plan_steps
from pellucid.train.progress import restore
from pellucid.train.recipe import Recipe, with_decay
from pellucid.train.request import Request
from pellucid.train.sample import Sampler
from pellucid.train.step import TrainStep
from pellucid.train.trial import choose_variant, time_steps
from pellucid.train.variant import LossFunction, Variant, loss_function
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig
from pellucid.yardsticks import Score


@dataclass(kw_only=True)
class Parts:
    """What a run is made of before anyone knows how fast it goes."""

    folder: RunFolder
    material: Material
    model: TransformerLM
    batches: Batches
    training: TrainingConfig
    optimizer: OptimizerConfig
    sampler: Sampler
    observe: Observer

    def train_step(self, loss: LossFunction) -> TrainStep:
        """A step with a new optimizer."""
        return TrainStep(
            self.model,
            loss,
            build_optimizer(self.model, self.optimizer),
            self.batches,
            max_gradient_norm=self.optimizer.max_gradient_norm,
            micro_batch_size=self.training.micro_batch_size,
            seed=self.training.seed,
        )

    def evaluate(self) -> Score | None:
        """The held-out score, if anything is held out."""
        return evaluate(self.model, self.material.data, self.material.tokenizer.end_of_text_id)

    def sample(self) -> tuple[str, str]:
        """The prompt, and what the model makes of it."""
        return self.sampler.prompt, self.sampler(self.model)

    def time_pause(self) -> float:
        """Seconds that an evaluation with its sample takes."""
        begun = time.monotonic()
        self.evaluate()
        self.sample()
        return time.monotonic() - begun

    def loop(self, **rest: Any) -> Loop:
        """The loop over these parts; `rest` are its other fields."""
        return Loop(
            model=self.model,
            folder=self.folder,
            bits_per_nat=self.material.bits_per_nat,
            evaluate=self.evaluate,
            sample=self.sample,
            observe=self.observe,
            **rest,
        )


def assemble(
    request: Request,
    recipe: Recipe,
    folder: RunFolder,
    material: Material,
    sampler: Sampler,
    observe: Observer,
    *,
    begun: float,
) -> Loop:
    """Build the model, choose the variant, time it, and fix the number of steps; run.json then says all of it."""
    training = request.training
    model, fresh = _fresh_model(recipe, material, training)
    parts = Parts(
        folder=folder,
        material=material,
        model=model,
        batches=_batches(material, model, recipe.batch_size, training.seed),
        training=training,
        optimizer=recipe.optimizer,
        sampler=sampler,
        observe=observe,
    )
    pause_seconds = parts.time_pause()
    deadline = last_step_at(begun, request.minutes, pause_seconds)
    evaluations = affordable_evaluations(training.evaluations, deadline, pause_seconds)
    parts.training = training = replace(training, evaluations=evaluations)
    seconds_left = float("inf") if deadline is None else deadline - time.monotonic()
    most_steps = (recipe.most_readings or math.inf) / parts.batches.epochs_after(1)
    variant, loss, step_seconds = _try_out(parts, seconds_left, training.steps or most_steps)
    model.load_state_dict(fresh)  # the trial has moved the weights
    durations = {"step_seconds": step_seconds, "pause_seconds": pause_seconds}
    progress = plan_steps(training, recipe.schedule, deadline=deadline, most_steps=most_steps, **durations)
    parts.optimizer = with_decay(recipe.optimizer, parts.batches.epochs_after(progress.steps), recipe.most_decay)
    planned = _planned(request, parts, progress.steps, step_seconds, variant, used_up=progress.steps + 1 > most_steps)
    environment = {"environment": facts.environment(next(model.parameters()).device)}
    folder.write_run(folder.facts | environment | {"plan": planned.as_json(), "model": asdict(model.config)})
    observe(planned)
    return parts.loop(
        train_step=parts.train_step(loss),
        schedule=recipe.schedule,
        progress=progress,
        evaluations=training.evaluations,
        deadline=deadline,
        step_seconds=step_seconds,
        most_steps=most_steps,
    )


def assemble_again(
    folder: RunFolder,
    material: Material,
    checkpoint: Checkpoint,
    sampler: Sampler,
    observe: Observer,
    *,
    variant: Variant,
) -> Loop:
    """Put a run together as its run.json and its checkpoint say; `variant` is the plan's, where it can still be had."""
    config, plan = folder.facts["config"], folder.facts["plan"]
    training = TrainingConfig(**config["training"])
    model = TransformerLM(folder.model_config())
    load_weights(model, checkpoint.model, folder.path)
    model.to(check_device(plan["device"], Capabilities.of_this_machine()))
    model.train()
    parts = Parts(
        folder=folder,
        material=material,
        model=model,
        batches=_batches(material, model, config["batch_size"], training.seed),
        training=training,
        optimizer=OptimizerConfig(**plan["optimizer"]),
        sampler=sampler,
        observe=observe,
    )
    train_step = parts.train_step(loss_function(model, variant))
    train_step.optimizer.load_state_dict(checkpoint.optimizer)
    return parts.loop(
        train_step=train_step,
        schedule=ScheduleConfig(**config["schedule"]),
        progress=restore(checkpoint),
        evaluations=plan["evaluations"],
        step_seconds=plan["step_seconds"],
    )


def _try_out(parts: Parts, seconds_left: float, most_steps: float) -> tuple[Variant, LossFunction, float]:
    """The fastest variant that is right, and what a step with it takes."""
    at_once = slice(parts.training.micro_batch_size)  # never more rows than the person said there is memory for
    device = next(parts.model.parameters()).device
    inputs, targets = (part.to(device) for part in parts.batches.at(0, rows=at_once))
    return choose_variant(
        parts.model,
        (inputs, targets),
        parts.training,
        lambda loss: time_steps(parts.train_step(loss)),
        seconds_left,
        parts.observe,
        most_steps,
    )


def _fresh_model(
    recipe: Recipe, material: Material, training: TrainingConfig
) -> tuple[TransformerLM, dict[str, Tensor]]:
    """A new model on its device, and its weights as they were made: on the CPU, so that every device begins alike."""
    model = TransformerLM(recipe.model_config(material.tokenizer.vocab_size))
    initialize(model, recipe.initialization, seed=training.seed)
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return model.to(check_device(training.device, Capabilities.of_this_machine())), fresh


def _batches(material: Material, model: TransformerLM, batch_size: int, seed: int) -> Batches:
    check_vocabulary(material.data.train, model.config.vocab_size)
    return Batches(material.data.train, context_length=model.config.context_length, batch_size=batch_size, seed=seed)


def _planned(
    request: Request, parts: Parts, steps: int, step_seconds: float, variant: Variant, *, used_up: bool
) -> Planned:
    batches, model = parts.batches, parts.model
    return Planned(
        model=asdict(model.config),
        parameters=model.num_parameters(),
        batch_size=batches.batch_size,
        micro_batch_size=min(parts.training.micro_batch_size or batches.batch_size, batches.batch_size),
        tokens_per_step=batches.batch_size * batches.context_length,
        steps=steps,
        epochs=batches.epochs_after(steps),
        step_seconds=step_seconds,
        variant=str(variant),
        threads=torch.get_num_threads(),
        device=next(model.parameters()).device.type,
        evaluations=parts.training.evaluations,
        minutes=request.minutes,
        used_up=used_up and request.training.steps is None,
        optimizer=asdict(parts.optimizer),
        out=facts.as_text(request.out),
    )
