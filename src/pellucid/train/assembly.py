"""A run with every part in place: built new with a trial, or again from its folder without one.

In: a run folder with its material, and a checkpoint or none.  Out: a `Loop`.  Used by: run.  Read next: run.py.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace

import torch
from torch import Tensor

from pellucid.checkpoint import Checkpoint, RunFolder
from pellucid.convert import reaches
from pellucid.data import Batches, ChatBatches
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.optim import cut_like
from pellucid.parallel import ALONE, Ranks
from pellucid.train import facts
from pellucid.train.events import Extended, MicroBatchHalved, Noticed, Observer, Planned, StartScored
from pellucid.train.loop import Loop
from pellucid.train.machine import give_back_memory
from pellucid.train.material import Material
from pellucid.train.memory import available_bytes, estimate_memory, too_much
from pellucid.train.parts import Parts
from pellucid.train.plan import affordable_evaluations, extended, last_step_at, plan_steps
from pellucid.train.progress import Progress, figures, restore
from pellucid.train.recipe import Recipe, with_decay
from pellucid.train.request import minutes_of
from pellucid.train.run_model import adapter, fresh_model, model_again, ready, started_model
from pellucid.train.sample import sampler_of
from pellucid.train.start import Start
from pellucid.train.trial import attention_path, choose_variant, sharded_variant, time_some_steps, time_steps
from pellucid.train.variant import LossFunction, Variant
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig


def assemble(parts: Parts, recipe: Recipe, *, begun: float) -> Loop:
    """Choose the variant, time it, and fix the number of steps; run.json then says all of it.

    Args:
        parts: With a new model.
        recipe: What to train.
        begun: When the person pressed Enter.
    """
    training, folder, ranks = parts.training, parts.folder, parts.ranks
    minutes = minutes_of(training)
    fresh = {name: tensor.clone() for name, tensor in moved_state(parts.model).items()}
    parts.optimizer = recipe.optimizer
    if training.shard and ranks.count == 1:
        told = "--shard has nothing to share out: this one process holds the whole model."
        parts.observe(Noticed(step=0, kind="shard", sentence=told))
    _warn_of_memory(parts)
    seconds, before = parts.time_pause()
    pause_seconds = ranks.largest(seconds)
    deadline = last_step_at(begun, minutes, pause_seconds)
    evaluations = ranks.from_first(affordable_evaluations(training.evaluations, deadline, pause_seconds))
    parts.training = training = replace(training, evaluations=evaluations)
    seconds_left = float("inf") if deadline is None else deadline - time.monotonic()
    most_steps = (recipe.most_readings or math.inf) / parts.batches.epochs_after(1)
    variant, step_seconds = _try_out(parts, fresh, seconds_left, training.steps or most_steps)
    put_back(parts.model, fresh)  # some ways to try have moved the weights
    durations = {"step_seconds": step_seconds, "pause_seconds": pause_seconds}
    progress = plan_steps(training, recipe.schedule, deadline=deadline, most_steps=most_steps, **durations)
    progress = Progress(**ranks.from_first(asdict(progress)))
    parts.optimizer = with_decay(recipe.optimizer, parts.batches.epochs_after(progress.steps), recipe.most_decay)
    planned = _planned(parts, progress.steps, step_seconds, variant, used_up=progress.steps + 1 > most_steps)
    if ranks.is_first:
        environment = {"environment": facts.environment(next(parts.model.parameters()).device)}
        kept = {"plan": planned.as_json(), "model": asdict(parts.model.config)}
        if before is not None:
            kept["before"] = figures(before)
        folder.save_config(parts.model.config)
        folder.write_run(folder.facts | environment | kept)
    parts.observe(planned)
    if before is not None:
        parts.observe(StartScored(**figures(before)))
    return parts.loop(
        variant,
        schedule=recipe.schedule,
        progress=progress,
        evaluations=training.evaluations,
        deadline=deadline,
        step_seconds=step_seconds,
        most_steps=most_steps,
    )


def assemble_again(parts: Parts, checkpoint: Checkpoint, variant: Variant) -> Loop:
    """Put a run together as its run.json and its checkpoint say.

    Args:
        parts: With the model of the checkpoint.
        checkpoint: Where to go on.
        variant: The plan's, where it can still be had.
    """
    config, plan = parts.folder.facts["config"], parts.folder.facts["plan"]
    parts.optimizer = OptimizerConfig(**plan["optimizer"])
    progress, schedule = restore(checkpoint), ScheduleConfig(**config["schedule"])
    if plan.get("ranks", 1) == parts.ranks.count:  # the same cut of the work, to the last digit
        rows = progress.micro_batch_size or plan["micro_batch_size"]
        parts.training = replace(parts.training, micro_batch_size=rows)
    loop = parts.loop(
        variant,
        schedule=schedule,
        progress=progress,
        evaluations=plan["evaluations"],
        step_seconds=plan["step_seconds"],
    )
    loop.keeper.restore(checkpoint.optimizer)
    return loop


def extend(loop: Loop, steps: int | None) -> Extended | None:
    """Move a loop's last step, if it is to be moved; the schedule is then that of a run of so many steps."""
    progress = loop.progress
    if steps is None or steps == progress.steps:
        return None
    before, old_steps = loop.learning_rate_fraction(progress.step + 1), progress.steps
    extended(progress, loop.schedule, steps)
    return Extended(
        step=progress.step,
        old_steps=old_steps,
        new_steps=steps,
        old_fraction=before,
        new_fraction=loop.learning_rate_fraction(progress.step + 1),
    )


def parts_of(
    folder: RunFolder,
    material: Material,
    observe: Observer,
    ranks: Ranks = ALONE,
    checkpoint: Checkpoint | None = None,
    start: Start | None = None,
) -> Parts:
    """The parts of the run that a folder's run.json describes: new, or as a checkpoint has them.

    Args:
        folder: The run's.
        material: What it learns from.
        observe: Hears every event.
        ranks: Who takes part.
        checkpoint: Where to go on.
        start: The model that a new run begins with, if it is open already.
    """
    config = folder.facts["config"]
    training, recipe = TrainingConfig(**config["training"]), Recipe.of_json(config)
    if checkpoint is not None:
        model = model_again(folder, checkpoint, recipe, training, ranks.local_rank)
    elif begun_from := folder.facts.get("from"):
        model = started_model(start or Start.again(begun_from), recipe, training)
        model = ready(model, training.device, training, ranks.local_rank)
    else:
        model = fresh_model(recipe, material.tokenizer.vocab_size, training, ranks.local_rank)
    context_length = recipe.model.get("context_length", model.config.context_length)
    sizes = {"context_length": context_length, "batch_size": recipe.batch_size}
    return Parts(
        folder=folder,
        material=material,
        model=model,
        batches=_batches(material, training, **sizes),
        training=training,
        sampler=sampler_of(folder, material),
        observe=observe,
        ranks=ranks,
    )


def _batches(material: Material, training: TrainingConfig, **sizes: int) -> Batches | ChatBatches:
    data = material.data
    if data.are_chats:
        return ChatBatches(data.train, **sizes, seed=training.seed)
    how = {"weights": data.weights, "mask_documents": training.mask_documents}
    return Batches(data.parts, **sizes, seed=training.seed, **how)


def moved_state(model: TransformerLM) -> dict[str, Tensor]:
    """Everything of a model's state that training may move, by name."""
    frozen = {name for name, weight in model.named_parameters(remove_duplicate=False) if not weight.requires_grad}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in frozen}


def put_back(model: TransformerLM, weights: dict[str, Tensor]) -> None:
    """Give a model, whole or cut over ranks, the weights it had."""
    with torch.no_grad():
        for name, tensor in moved_state(model).items():
            tensor.copy_(cut_like(weights[name], tensor))


def _try_out(parts: Parts, fresh: dict[str, Tensor], seconds_left: float, most_steps: float) -> tuple[Variant, float]:
    """The fastest variant that is right, and what a step with it takes; the first rank's choice holds for all."""

    def time_step(loss: LossFunction) -> float:
        step_seconds = time_steps(parts.rehearsal(loss))
        put_back(parts.model, fresh)  # the next variant is compared on the weights that the reference was made on
        return step_seconds

    if parts.training.shard and parts.ranks.count > 1:
        model = parts.model
        variant = sharded_variant(parts.training, next(model.parameters()).device.type, model.config)
        seconds = time_some_steps(parts.train_step(variant))
        return variant, parts.ranks.largest(seconds)
    while True:
        rows = parts.training.micro_batch_size or -(-parts.batches.batch_size // parts.ranks.count)
        device = next(parts.model.parameters()).device
        batch = tuple(part[:rows].to(device) for part in parts.batches.at(0))
        try:
            variant, parts.loss, step_seconds = choose_variant(
                parts.model,
                batch,
                parts.training,
                time_step,
                seconds_left,
                parts.observe,
                most_steps,
                has_learned="from" in parts.folder.facts,
            )
        except torch.OutOfMemoryError:
            if rows == 1 or parts.ranks.count > 1:
                raise
            rows = -(-rows // 2)
            parts.training = replace(parts.training, micro_batch_size=rows)
            parts.observe(MicroBatchHalved(step=0, micro_batch_size=rows, batch_size=parts.batches.batch_size))
            give_back_memory(device)
        else:
            agreed = Variant.parse(parts.ranks.from_first(str(variant)))
            if agreed != variant:
                parts.loss = None
            return agreed, parts.ranks.largest(step_seconds)


def _memory(parts: Parts, variant: Variant) -> Callable[[ModelConfig, int], int]:
    """How many bytes the run would take with a model and so many rows at once."""

    def needed(config: ModelConfig, rows: int) -> int:
        return estimate_memory(
            config,
            parts.optimizer,
            rows=rows,
            variant=variant,
            checkpointing=parts.training.activation_checkpointing,
            averaged=parts.training.ema is not None,
            adapt=adapter(parts.training, parts.model.token_embedding.weight.requires_grad),
            device=next(parts.model.parameters()).device.type,
        ).total

    return needed


def _warn_of_memory(parts: Parts) -> None:
    """Say before anything large is made what would not fit; it is an estimate, and may be tried all the same."""
    device, config = next(parts.model.parameters()).device, parts.model.config
    available = available_bytes(device)
    share = -(-parts.batches.batch_size // parts.ranks.count)
    config = replace(config, context_length=parts.batches.context_length)
    variant = Variant(attention=attention_path(config.context_length))
    rows = min(parts.training.micro_batch_size or share, share)
    if available and (advice := too_much(_memory(parts, variant), config, rows, available)):
        parts.observe(Noticed(step=0, kind="memory", sentence=f"This may not fit: {advice}."))


def _planned(parts: Parts, steps: int, step_seconds: float, variant: Variant, *, used_up: bool) -> Planned:
    batches, model, share = parts.batches, parts.model, -(-parts.batches.batch_size // parts.ranks.count)
    are_apart = parts.training.mask_documents or parts.material.data.are_chats
    return Planned(
        model=asdict(model.config),
        parameters=model.num_parameters(),
        trained_parameters=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        batch_size=batches.batch_size,
        micro_batch_size=min(parts.training.micro_batch_size or share, share),
        tokens_per_step=batches.batch_size * batches.context_length,
        steps=steps,
        epochs=batches.epochs_after(steps),
        epochs_of_parts=batches.epochs_of_parts(steps),
        packed_documents=0 if are_apart else parts.material.data.training_documents,
        step_seconds=step_seconds,
        variant=str(variant),
        threads=torch.get_num_threads(),
        device=next(model.parameters()).device.type,
        evaluations=parts.training.evaluations,
        minutes=minutes_of(parts.training),
        ranks=parts.ranks.count,
        used_up=used_up and parts.training.steps is None,
        optimizer=asdict(parts.optimizer),
        memory_bytes=_memory(parts, variant)(
            replace(model.config, context_length=batches.context_length),
            min(parts.training.micro_batch_size or share, share),
        ),
        row_length=batches.context_length if batches.context_length < model.config.context_length else None,
        reach=reaches(model.config, parts.material.tokenizer.kind).sentence,
        out=facts.as_text(parts.folder.path),
    )
