"""The loop: step, and at fixed steps evaluate, sample, save; once, before the decay, count the steps anew.

    1 ─────────────── decay begins ──────────────── steps
        constant rate  │ plan again   rate falls

A run is counted in steps, so it can be repeated and resumed; time only decides, once, how many.

In: a prepared run.  Out: events, checkpoints, the best weights.  Used by: run.  Read next: run.py.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from pellucid.checkpoint import Checkpoint, RunFolder
from pellucid.errors import TrainingStopped
from pellucid.nn import TransformerLM
from pellucid.optim import learning_rate_fraction
from pellucid.train.events import Evaluated, Observer, Replanned, Sampled, Saved, StepDone
from pellucid.train.step import StepResult, TrainStep
from pellucid.training_config import ScheduleConfig
from pellucid.yardsticks import Score

MOST_SKIPPED = 10  # steps in a row whose loss or gradient was not finite, after which going on makes no sense
WORTH_REPLANNING = 0.01  # of the steps; less is noise
SMOOTHED = 0.95  # how much of the running train loss an earlier step keeps


@dataclass
class Progress:
    """Where a run stands: all that a checkpoint holds beside weights and optimizer."""

    step: int = 0
    steps: int = 0
    planned_steps: int = 0
    decay_begins: int = 0
    replanned: bool = False
    best_step: int = 0
    best_even: float = math.inf
    best_odd: float = math.inf
    best_held_out: float = math.inf
    best_standard_error: float | None = None
    train: float | None = None
    skipped: int = 0
    skipped_in_a_row: int = 0


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A run that is ready to go; calling it goes on from `progress`.

    The parts are given, so that a test can give others.
    """

    model: TransformerLM
    train_step: TrainStep
    folder: RunFolder
    schedule: ScheduleConfig
    progress: Progress
    bits_per_nat: float
    """Bits per character for one nat per token."""
    evaluate: Callable[[], Score]
    sample: Callable[[int], tuple[str, str]]
    """From a step to (prompt, continuation)."""
    evaluate_every: int
    observe: Observer
    deadline: float | None = None
    """When the loop should end, on time.monotonic's clock."""
    step_seconds: float = 0.0
    """What the trial said."""
    should_stop: Callable[[], bool] = lambda: False

    def __call__(self) -> Progress:
        """Run to the last step, or to the step in which `should_stop` says so; either way everything is saved."""
        state, saved = self.progress, self.progress.step
        begun, first = time.monotonic(), state.step
        self.model.train()
        while state.step < state.steps:
            if state.step == state.decay_begins and not state.replanned:
                self._replan(begun, first)
            state.step += 1
            result = self.train_step(state.step, self._fraction())
            self._count(result)
            seconds_left = self._report(result, begun, first)
            stopping = self.should_stop()
            if state.step % self.evaluate_every == 0 or state.step == state.steps or stopping:
                self._evaluate(seconds_left, begun, first)
                self._save()
                saved = state.step
            if stopping:
                break
        if saved != state.step:
            self._save()
        return state

    def _fraction(self) -> float:
        """The learning rate, as a fraction of its peak; the decay spans from where it begins to the last step."""
        state, schedule = self.progress, self.schedule
        if schedule.shape == "trapezoid":
            schedule = replace(schedule, decay_fraction=(state.steps - state.decay_begins) / max(state.steps, 1))
        return learning_rate_fraction(state.step, state.steps, schedule)

    def _replan(self, begun: float, first: int) -> None:
        """Count the steps that fit until the deadline, now that real ones have been timed."""
        state = self.progress
        state.replanned = True
        done = state.step - first
        if self.deadline is None or done < 1:
            return
        now = time.monotonic()
        step_seconds = (now - begun) / done
        steps = state.step + max(1, int((self.deadline - now) / step_seconds))
        if abs(steps - state.steps) > WORTH_REPLANNING * state.steps:
            self.observe(
                Replanned(
                    step=state.step,
                    old_steps=state.steps,
                    new_steps=steps,
                    step_seconds=step_seconds,
                    planned_step_seconds=self.step_seconds,
                )
            )
            state.steps = steps

    def _count(self, result: StepResult) -> None:
        state = self.progress
        state.skipped_in_a_row = state.skipped_in_a_row + 1 if result.skipped else 0
        state.skipped += result.skipped
        if state.skipped_in_a_row >= MOST_SKIPPED:
            raise TrainingStopped(
                "losses and gradients that are finite",
                came=f"{MOST_SKIPPED} steps in a row, to step {state.step}, with loss {result.loss} and gradient norm"
                f" {result.gradient_norm}",
                remedy="lower the learning rates (--optimizer.matrix-learning-rate), or train with --precision float32;"
                f" the last good checkpoint is in {self.folder.path}",
            )
        if not result.skipped:
            bits = result.loss * self.bits_per_nat
            state.train = bits if state.train is None else SMOOTHED * state.train + (1 - SMOOTHED) * bits

    def _report(self, result: StepResult, begun: float, first: int) -> float:
        state = self.progress
        pace = (time.monotonic() - begun) / (state.step - first)
        seconds_left = pace * (state.steps - state.step)
        self.observe(
            StepDone(
                step=state.step,
                steps=state.steps,
                bits_per_character=result.loss * self.bits_per_nat,
                gradient_norm=result.gradient_norm,
                learning_rates=self.train_step.optimizer.learning_rates(),
                epoch=self.train_step.batches.epochs_after(state.step),
                tokens_per_second=result.tokens / pace,
                seconds_left=seconds_left,
                skipped=result.skipped,
            )
        )
        return seconds_left

    def _evaluate(self, seconds_left: float, begun: float, first: int) -> None:
        state, started = self.progress, time.monotonic()
        score = self.evaluate()
        even = score.of_passages(slice(0, None, 2)).bits_per_character
        odd = score.of_passages(slice(1, None, 2)).bits_per_character
        is_best = even < state.best_even
        if is_best:
            state.best_step, state.best_even, state.best_odd = state.step, even, odd
            state.best_held_out, state.best_standard_error = score.bits_per_character, score.standard_error
            self.folder.save_model(self.model.state_dict(), self.model.config, step=str(state.step))
        pace = (started - begun) / max(state.step - first, 1)
        tokens = self.train_step.batches.batch_size * self.train_step.batches.context_length
        self.observe(
            Evaluated(
                step=state.step,
                steps=state.steps,
                train=state.train,
                held_out=score.bits_per_character,
                standard_error=score.standard_error,
                held_out_even=even,
                held_out_odd=odd,
                is_best=is_best,
                seconds=time.monotonic() - started,
                epoch=self.train_step.batches.epochs_after(state.step),
                tokens_per_second=tokens / pace,
                seconds_left=seconds_left,
            )
        )
        prompt, text = self.sample(state.step)
        self.observe(Sampled(step=state.step, prompt=prompt, text=text))

    def _save(self) -> None:
        state = self.progress
        path = self.folder.save_checkpoint(
            state.step,
            self.model.state_dict(),
            self.train_step.optimizer.state_dict(),
            {"progress": asdict(state)},
            score=state.best_even if state.best_step == state.step else None,
        )
        self.observe(Saved(step=state.step, path=str(path)))


def restore(checkpoint: Checkpoint) -> Progress:
    """The progress that a checkpoint holds."""
    return Progress(**checkpoint.state["progress"])
