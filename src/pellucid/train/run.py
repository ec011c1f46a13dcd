"""A run from text to model: everything is decided once, written down, and then carried out step by step.

    sources ─▶ recipe ─▶ run folder ─▶ material, yardsticks ─▶ model ─▶ variant, trial ─▶ plan ─▶ loop ─▶ Finished

In: a `Request`.  Out: a run folder; events.  Used by: the command line.  Read next: ../generate.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from pellucid.checkpoint import Checkpoint, RunFolder, load_weights
from pellucid.data import Batches, Sources, check_vocabulary
from pellucid.errors import UserError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM, initialize
from pellucid.optim import build_optimizer
from pellucid.train import facts
from pellucid.train.evaluation import evaluate
from pellucid.train.events import Event, Finished, Observer, Planned, TextRead, YardsticksMeasured
from pellucid.train.loop import Loop, Progress, restore
from pellucid.train.material import Material, make_material, measure, reopen_material
from pellucid.train.recipe import Recipe, choose_recipe
from pellucid.train.sample import closing_sample, sampler
from pellucid.train.step import TrainStep
from pellucid.train.trial import choose_variant, time_steps
from pellucid.train.variant import LossFunction, Variant, loss_function
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig
from pellucid.yardsticks import longest_copied

DEFAULT_MINUTES = 5.0
CLOSING_SECONDS = 2.0  # the last sample, the search for copied passages, the last files: 1 to 2 s were seen


@dataclass(frozen=True, kw_only=True)
class Request:
    """What somebody asked for."""

    sources: Sources
    name: str
    """What the text is called on the screen and in run.json."""
    out: Path
    training: TrainingConfig = field(default_factory=TrainingConfig)
    preset: str = "default"
    tokenizer: str | None = None
    vocab_size: int | None = None
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig that are not the recipe's."""
    optimizer: dict[str, Any] = field(default_factory=dict)
    """Fields of OptimizerConfig that are not the recipe's."""
    schedule: dict[str, Any] = field(default_factory=dict)
    """Fields of ScheduleConfig that are not the recipe's."""

    @property
    def minutes(self) -> float | None:
        """Minutes, or None for a run that is counted in steps."""
        return self.training.minutes if self.training.steps else self.training.minutes or DEFAULT_MINUTES

    def recipe(self) -> Recipe:
        """The planner's recipe with everything that was asked for put over it."""
        chosen = choose_recipe(self.sources.characters, self.minutes or DEFAULT_MINUTES, self.preset)
        return replace(
            chosen,
            tokenizer=self.tokenizer or chosen.tokenizer,
            vocab_size=self.vocab_size or chosen.vocab_size,
            model=chosen.model | self.model,
            batch_size=self.training.batch_size or chosen.batch_size,
            optimizer=replace(chosen.optimizer, **self.optimizer),
            schedule=replace(chosen.schedule, **self.schedule),
        )


def train(
    request: Request,
    observe: Observer,
    *,
    begun: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Finished:
    """Make a new run.

    Args:
        request: What to do.
        observe: Hears every event.
        begun: When the person pressed Enter, on time.monotonic's clock; minutes count from here.
        should_stop: Asked after every step.

    Raises:
        UserError: if the text or the settings cannot work, or the folder is not free. Nothing is left behind.
    """
    begun = time.monotonic() if begun is None else begun
    recipe = request.recipe()
    recipe.model_config(recipe.vocab_size)  # a wrong setting is told before anything is read or written
    folder = RunFolder.create(request.out, _first_facts(request, recipe))
    with folder.lock(discard_on_failure=True):
        heard = _recorded(folder, observe)
        heard(_text_read(request))
        with use_machine(request.training.threads):
            material = make_material(request.sources, recipe, folder.tokens_path, heard)
            material.tokenizer.save(folder.tokenizer_path)
            yardsticks = measure(request.sources, heard)
            run = _Run.new(request, recipe, folder, material, heard, begun)
            folder.write_run(run.facts | {"yardsticks": asdict(yardsticks)})
            return run.carry_out(should_stop, yardsticks, begun)


def resume(
    path: Path, observe: Observer, *, begun: float | None = None, should_stop: Callable[[], bool] = lambda: False
) -> Finished:
    """Go on with a run from its latest checkpoint, with everything as it was decided then.

    Args:
        path: The run folder.
        observe: Hears every event from here on.
        begun: When the person pressed Enter.
        should_stop: Asked after every step.

    Raises:
        RunFolderError: if there is no run, or none to go on with.
    """
    folder = RunFolder.open(path)
    with folder.lock():
        saved = folder.latest_checkpoint()
        if saved is None or "plan" not in folder.facts:
            raise UserError(
                f"a checkpoint in '{path}' to go on from",
                came="none: it was stopped before its first",
                remedy="start it again with the same command",
            )
        checkpoint = folder.load_checkpoint(saved)
        folder.rewind_metrics(checkpoint)
        with use_machine(folder.facts["environment"]["threads"]):
            material = reopen_material(folder.tokens_path, folder.tokenizer_path)
            run = _Run.again(folder, material, checkpoint, _recorded(folder, observe))
            yardsticks = YardsticksMeasured(**folder.facts["yardsticks"])
            return run.carry_out(should_stop, yardsticks, time.monotonic() if begun is None else begun)


class use_machine:  # noqa: N801 - a context manager, read as a verb
    """Threads and reproducible algorithms while a run lasts; afterwards torch is as it was before.

    Compiled steps, and looking rows of an embedding up, are not reproducible on two threads without the switch.
    """

    def __init__(self, threads: int | None) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        self.before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        torch.set_num_threads(self.threads or self.before[0])
        torch.use_deterministic_algorithms(True)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self.before[0])
        torch.use_deterministic_algorithms(self.before[1])


@dataclass(kw_only=True)
class _Run:
    """A run with every part in place."""

    folder: RunFolder
    material: Material
    model: TransformerLM
    train_step: TrainStep
    schedule: ScheduleConfig
    progress: Progress
    training: TrainingConfig
    facts: dict[str, Any]
    observe: Observer
    evaluate_every: int
    step_seconds: float
    deadline: float | None

    @classmethod
    def new(
        cls, request: Request, recipe: Recipe, folder: RunFolder, material: Material, observe: Observer, begun: float
    ) -> "_Run":
        """Build the model, choose the variant, time it, and fix the number of steps."""
        training = request.training
        model = _build_model(recipe.model_config(material.tokenizer.vocab_size), recipe.initialization, training.seed)
        check_vocabulary(material.data.train, model.config.vocab_size)
        batches = _batches(material, model, recipe.batch_size, training.seed)

        def time_step(loss: LossFunction) -> float:
            return time_steps(_train_step(model, loss, recipe.optimizer, batches, training))

        deadline = None if request.minutes is None else begun + 60 * request.minutes
        seconds_left = float("inf") if deadline is None else deadline - time.monotonic()
        variant, loss, step_seconds = choose_variant(model, batches.at(0), training, time_step, seconds_left, observe)
        _build_model(model.config, recipe.initialization, training.seed, into=model)

        sample = sampler(model, material.tokenizer, training.prompt, training.seed)
        started = time.monotonic()
        evaluate(model, material.data, material.tokenizer.end_of_text_id)
        sample(0)
        pause = time.monotonic() - started
        if deadline is not None:
            deadline -= CLOSING_SECONDS + pause
        steps = training.steps or max(
            training.evaluations,
            int((deadline - time.monotonic() - training.evaluations * pause) / step_seconds),
        )
        progress = Progress(steps=steps, planned_steps=steps)
        if recipe.schedule.shape == "trapezoid":
            progress.decay_begins = steps - round(steps * recipe.schedule.decay_fraction)
        every = max(1, steps // training.evaluations)
        planned = _planned(request, model, batches, steps, step_seconds, variant, every)
        run_facts = folder.facts | {
            "model": asdict(model.config),
            "environment": facts.environment(next(model.parameters()).device),
            "plan": planned.as_json(),
        }
        observe(planned)
        return cls(
            folder=folder,
            material=material,
            model=model,
            train_step=_train_step(model, loss, recipe.optimizer, batches, training),
            schedule=recipe.schedule,
            progress=progress,
            training=training,
            facts=run_facts,
            observe=observe,
            evaluate_every=every,
            step_seconds=step_seconds,
            deadline=deadline,
        )

    @classmethod
    def again(cls, folder: RunFolder, material: Material, checkpoint: Checkpoint, observe: Observer) -> "_Run":
        """Put a run together as its run.json and its checkpoint say, with no trial."""
        config = folder.facts["config"]
        training = TrainingConfig(**config["training"])
        model = TransformerLM(folder.model_config())
        load_weights(model, checkpoint.model, folder.path)
        variant = Variant.parse(folder.facts["plan"]["variant"])
        batches = _batches(material, model, config["batch_size"], training.seed)
        train_step = _train_step(
            model, loss_function(model, variant), OptimizerConfig(**config["optimizer"]), batches, training
        )
        train_step.optimizer.load_state_dict(checkpoint.optimizer)
        return cls(
            folder=folder,
            material=material,
            model=model,
            train_step=train_step,
            schedule=ScheduleConfig(**config["schedule"]),
            progress=restore(checkpoint),
            training=training,
            facts=folder.facts,
            observe=observe,
            evaluate_every=folder.facts["plan"]["evaluate_every"],
            step_seconds=folder.facts["plan"]["step_seconds"],
            deadline=None,
        )

    def carry_out(self, should_stop: Callable[[], bool], yardsticks: YardsticksMeasured, begun: float) -> Finished:
        """The loop, and what is said at the end."""
        tokenizer, data = self.material.tokenizer, self.material.data
        started, first = time.monotonic(), self.progress.step
        state = Loop(
            model=self.model,
            train_step=self.train_step,
            folder=self.folder,
            schedule=self.schedule,
            progress=self.progress,
            bits_per_nat=self.material.bits_per_nat,
            evaluate=lambda: evaluate(self.model, data, tokenizer.end_of_text_id),
            sample=sampler(self.model, tokenizer, self.training.prompt, self.training.seed),
            evaluate_every=self.evaluate_every,
            observe=self.observe,
            deadline=self.deadline,
            step_seconds=self.step_seconds,
            should_stop=should_stop,
        )()
        batches = self.train_step.batches
        tokens = (state.step - first) * batches.batch_size * batches.context_length
        speed = tokens / max(time.monotonic() - started, 1e-9)
        sample = closing_sample(self.folder.load_model(), tokenizer, self.training.prompt, self.training.seed)
        finished = Finished(
            completed=state.step >= state.steps,
            step=state.step,
            steps=state.steps,
            planned_steps=state.planned_steps,
            best_step=state.best_step,
            held_out=state.best_held_out,
            standard_error=state.best_standard_error,
            held_out_even=state.best_even,
            held_out_odd=state.best_odd,
            train=state.train,
            yardsticks=asdict(yardsticks),
            copied=longest_copied(sample, self.material.training_text()).text if sample else "",
            sample=sample,
            seconds=time.monotonic() - begun,
            tokens_per_second=speed,
            skipped_steps=state.skipped,
            out=str(self.folder.path),
        )
        self.observe(finished)
        return finished


def _recorded(folder: RunFolder, observe: Observer) -> Observer:
    """Every event goes into metrics.jsonl before anyone hears it."""

    def heard(event: Event) -> None:
        folder.append_metrics(event.as_json())
        observe(event)

    return heard


def _build_model(config: ModelConfig, scheme: str, seed: int, into: TransformerLM | None = None) -> TransformerLM:
    return initialize(into or TransformerLM(config), scheme, seed=seed)


def _batches(material: Material, model: TransformerLM, batch_size: int, seed: int) -> Batches:
    context_length = model.config.context_length
    return Batches(material.data.train, context_length=context_length, batch_size=batch_size, seed=seed)


def _train_step(
    model: TransformerLM, loss: LossFunction, optimizer: OptimizerConfig, batches: Batches, training: TrainingConfig
) -> TrainStep:
    return TrainStep(
        model,
        loss,
        build_optimizer(model, optimizer),
        batches,
        max_gradient_norm=optimizer.max_gradient_norm,
        micro_batch_size=training.micro_batch_size,
        seed=training.seed,
    )


def _text_read(request: Request) -> TextRead:
    return TextRead(
        name=request.name,
        documents=len(request.sources.documents),
        characters=request.sources.characters,
        distinct_characters=len(request.sources.alphabet),
        fingerprint=request.sources.fingerprint,
        notes=tuple(request.sources.notes),
    )


def _planned(
    request: Request,
    model: TransformerLM,
    batches: Batches,
    steps: int,
    step_seconds: float,
    variant: Variant,
    every: int,
) -> Planned:
    return Planned(
        model=asdict(model.config),
        parameters=model.num_parameters(),
        batch_size=batches.batch_size,
        tokens_per_step=batches.batch_size * batches.context_length,
        steps=steps,
        epochs=batches.epochs_after(steps),
        step_seconds=step_seconds,
        variant=str(variant),
        threads=torch.get_num_threads(),
        device=next(model.parameters()).device.type,
        evaluate_every=every,
        minutes=request.minutes,
        out=str(request.out),
    )


def _first_facts(request: Request, recipe: Recipe) -> dict[str, Any]:
    """What makes the run what it is; the plan is added when it is made."""
    return {
        "format": "pellucid-run",
        "version": 1,
        "name": request.out.name,
        "command": facts.command(),
        "seed": request.training.seed,
        "data": facts.of_sources(request.sources, request.name),
        "config": {
            "preset": recipe.preset,
            "tokenizer": recipe.tokenizer,
            "vocab_size": recipe.vocab_size,
            "batch_size": recipe.batch_size,
            "initialization": recipe.initialization,
            "model": recipe.model,
            "optimizer": asdict(recipe.optimizer),
            "schedule": asdict(recipe.schedule),
            "training": asdict(request.training),
        },
    }
