"""The loop: step, and at fixed steps evaluate, sample, save; once, before the decay, count the steps anew.

    1 ─────────────── decay begins ──────────────── steps
        constant rate  │ plan again   rate falls

A run is counted in steps, so it can be repeated and resumed; time only decides, once, how many. A run that is stopped
saves first and is cooled down and evaluated then, for whoever stopped it: the run that goes on from there knows nothing
of that, and ends as if it had never been stopped.

In: a prepared run.  Out: events, checkpoints, the best weights.  Used by: assembly.  Read next: machine.py.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from pellucid.errors import TrainingStopped
from pellucid.optim import learning_rate_fraction
from pellucid.train.events import (
    CoolingDown,
    Evaluated,
    MicroBatchHalved,
    Observer,
    Replanned,
    Sampled,
    Saved,
    StepDone,
)
from pellucid.train.eyes import Eyes
from pellucid.train.facts import as_text
from pellucid.train.keeper import Keeper
from pellucid.train.plan import replan
from pellucid.train.progress import Pace, Progress, Wish, figures
from pellucid.train.step import StepResult, TrainStep
from pellucid.train.trouble import beyond_repair
from pellucid.training_config import ScheduleConfig
from pellucid.yardsticks import Score

MOST_SKIPPED = 10  # steps in a row whose loss or gradient was not finite, after which going on makes no sense


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A run that is ready to go; calling it goes on from `progress`."""

    train_step: TrainStep
    keeper: Keeper
    schedule: ScheduleConfig
    progress: Progress
    bits_per_nat: float
    """Bits per character that one nat per token comes to."""
    evaluate: Callable[[], Score | None]
    sample: Callable[[], tuple[str, str]]
    """Gives a prompt and what the model makes of it."""
    evaluations: int
    """How many, evenly spread; the last at the last step."""
    observe: Observer
    eyes: Eyes = field(default_factory=Eyes)
    """What looks at the modules."""
    deadline: float | None = None
    """When the last step should end, on time.monotonic's clock."""
    step_seconds: float = 0.0
    """What the trial said."""
    most_steps: float = math.inf
    """After how many the text has been read as often as it is worth."""

    def __call__(self, wish: Callable[[], Wish] = lambda: Wish.GO_ON) -> Progress:
        """Run to the last step, or to the one after which somebody wishes otherwise; either way everything is saved.

        Returns:
            Where the run stands, judged at its last step.

        Raises:
            TrainingStopped: if going on makes no sense. What was saved stays good.
        """
        state, pace, wished = self.progress, Pace(self.progress), Wish.GO_ON
        ranks = self.keeper.ranks

        def agreed() -> Wish:  # a signal may have reached some processes only, or one of them a step later
            return Wish(int(ranks.largest(wish())))

        while state.step < state.steps and not wished:
            if state.step == state.decay_begins:
                self._replan(pace)
            state.step += 1
            evaluate = state.evaluation_is_due(self.evaluations)
            self.eyes.open(state.step, evaluated=evaluate)
            result = self.train_step(state.step, self.learning_rate_fraction(state.step))
            self._take_note(state, result, pace)
            self.eyes.look(state.step)
            wished = agreed()
            is_best = evaluate and self._evaluate(state, pace)
            if evaluate or wished:
                self._save()
            if is_best:  # only now: whoever is killed between finds these weights in the checkpoint
                self.keeper.best(state.step)
            if wished:
                state = replace(state)
                cooled = wished == Wish.COOL_DOWN and self._cool_down(state, pace, agreed)
                if (cooled or not evaluate) and self._evaluate(state, pace):
                    self.keeper.best(state.step)
        return state

    def _cool_down(self, state: Progress, pace: Pace, wish: Callable[[], Wish]) -> bool:
        """Let the rate fall to its end within a few steps, of which a run that goes on knows nothing.

        Returns:
            Whether there were any.
        """
        step_seconds = self.keeper.ranks.from_first(pace.step_seconds())
        steps = state.cooling_steps(step_seconds, together=self.keeper.ranks.count > 1)
        high, low = self.learning_rate_fraction(state.step), self.schedule.final_fraction
        state.cooled_from, end = state.step, state.step + steps
        if steps:
            self.observe(CoolingDown(step=state.step, steps=end, seconds=steps * step_seconds))
        while state.step < end and wish() != Wish.STOP:
            state.step += 1
            result = self.train_step(state.step, high + (low - high) * (steps - end + state.step) / steps)
            self._take_note(state, result, pace, end)
        return steps > 0

    def learning_rate_fraction(self, step: int) -> float:
        """Of the peak rate; a trapezoid's decay spans from where it begins to the last step, wherever that is now."""
        state, schedule = self.progress, self.schedule
        if schedule.shape == "trapezoid":
            schedule = replace(schedule, decay_fraction=(state.steps - state.decay_begins) / state.steps)
        return learning_rate_fraction(step, state.steps, schedule)

    def _replan(self, pace: Pace) -> None:
        """Count the steps that fit until the deadline, now that real ones have been timed."""
        state = self.progress
        if self.deadline is None or state.step == pace.first:
            return
        replanned = replan(state, self.deadline, pace.step_seconds(), self.step_seconds, self.most_steps)
        replanned = Replanned(**self.keeper.ranks.from_first(asdict(replanned)))
        if replanned.new_steps != state.steps:
            self.observe(replanned)
            state.steps = replanned.new_steps

    def _take_note(self, state: Progress, result: StepResult, pace: Pace, end: int | None = None) -> None:
        batches, end = self.train_step.batches, end or state.steps
        bits = result.loss * self.bits_per_nat
        state.count(result, bits)
        if result.micro_batch_size != state.micro_batch_size:
            state.micro_batch_size = result.micro_batch_size
            rows = {"micro_batch_size": result.micro_batch_size, "batch_size": batches.batch_size}
            self.observe(MicroBatchHalved(step=state.step, **rows))
        self.observe(
            StepDone(
                step=state.step,
                steps=end,
                bits_per_character=bits,
                train=state.train,
                gradient_norm=result.gradient_norm,
                learning_rates=self.train_step.optimizer.learning_rates(),
                epoch=batches.epochs_after(state.step),
                tokens_per_second=result.tokens / pace.step_seconds(),
                seconds_left=pace.step_seconds() * (end - state.step),
                skipped=result.skipped,
                not_finite=self.eyes.first_non_finite(state.step) if state.skipped_in_a_row == 1 else "",
            )
        )
        if state.skipped_in_a_row >= MOST_SKIPPED:
            seen = f"with loss {result.loss} and gradient norm {result.gradient_norm}"
            raise self._beyond_repair(f"{MOST_SKIPPED} steps in a row, up to step {state.step}, {seen}", state.step)

    def _beyond_repair(self, came: str, step: int) -> TrainingStopped:
        rates, saved = self.train_step.optimizer.learning_rates(), self.keeper.folder.latest_checkpoint()
        return beyond_repair(came, rates, saved, self.eyes.first_non_finite(step))

    def _evaluate(self, state: Progress, pace: Pace) -> bool:
        """Score the held-out text and write a sample; says whether it is the best score so far."""
        batches, begun = self.train_step.batches, time.monotonic()
        tokens_per_second = batches.batch_size * batches.context_length / pace.step_seconds()
        with self.keeper.judged():
            score = self.evaluate()
            if score and not math.isfinite(score.bits_per_character):  # weights are bad for good, and must not be saved
                came = f"a held-out loss of {score.bits_per_character} after step {state.step}"
                raise self._beyond_repair(came, state.step)
            is_best = state.judge(score)
            self.observe(
                Evaluated(
                    step=state.step,
                    steps=state.steps,
                    epoch=batches.epochs_after(state.step),
                    train=state.train,
                    **figures(score),
                    is_best=is_best,
                    seconds=time.monotonic() - begun,
                    tokens_per_second=tokens_per_second,
                    seconds_left=pace.seconds_left(),
                )
            )
            prompt, text = self.sample()
        self.observe(Sampled(step=state.step, prompt=prompt, text=text))
        return is_best

    def _save(self) -> None:
        path = self.keeper.checkpoint(self.progress)
        self.observe(Saved(step=self.progress.step, path=as_text(path)))
