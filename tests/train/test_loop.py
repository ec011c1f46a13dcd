import dataclasses
import math

import pytest
import torch

from pellucid.checkpoint import RunFolder
from pellucid.data import Batches
from pellucid.errors import TrainingStopped
from pellucid.optim import build_optimizer
from pellucid.train.events import CoolingDown, Evaluated, Replanned, Sampled, Saved, StepDone
from pellucid.train.keeper import Keeper
from pellucid.train.loop import Loop
from pellucid.train.progress import Progress, Wish
from pellucid.train.step import StepResult, TrainStep
from pellucid.training_config import OptimizerConfig, ScheduleConfig
from pellucid.yardsticks import Score
from tests.train.small_run import Heard, small_model, stop_after


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for place in ("loop", "plan", "progress"):
        monkeypatch.setattr(f"pellucid.train.{place}.time", clock)
    return clock


class Rows(Batches):
    """Forty rows of sixteen tokens."""

    def __init__(self):
        self.batch_size, self.context_length = 4, 16

    def epochs_after(self, step):
        return step * self.batch_size / 40


class Steps(TrainStep):
    """Takes no step: tells losses that were decided before, and lets the clock run."""

    def __init__(self, model, clock=None, losses=None, seconds=lambda step: 1.0):
        self.model, self.optimizer = model, build_optimizer(model, OptimizerConfig())
        self.batches = Rows()
        self.clock, self.losses, self.seconds = clock, losses or {}, seconds
        self.fractions = {}

    def __call__(self, step, learning_rate_fraction):
        self.fractions[step] = learning_rate_fraction
        self.optimizer.set_learning_rate(learning_rate_fraction)
        if self.clock:
            self.clock.now += self.seconds(step)
        loss = self.losses.get(step, 2.0)
        return StepResult(
            loss=loss, tokens=64, gradient_norm=loss, skipped=not math.isfinite(loss), micro_batch_size=self.rows(step)
        )

    def rows(self, step):
        return 4


@pytest.fixture
def make_loop(tmp_path):
    def make(steps=10, *, evaluations=5, scores=None, schedule=None, decay_begins=None, step=None, **rest):
        model = small_model()
        folder = RunFolder.create(tmp_path / "run", {})
        schedule = schedule or ScheduleConfig(warm_up_steps=4, decay_fraction=0.4)
        begins = steps - round(steps * schedule.decay_fraction) if decay_begins is None else decay_begins
        progress = Progress(steps=steps, planned_steps=steps, decay_begins=begins, micro_batch_size=4)
        train_step = step(model) if step else Steps(model)

        def evaluate():
            bits = (scores or {}).get(progress.step, 10.0 - progress.step / 100)
            return Score("model", (bits,) * 4, (1,) * 4)

        return Loop(
            train_step=train_step,
            keeper=Keeper(folder=folder, model=model, optimizer=train_step.optimizer),
            schedule=schedule,
            progress=progress,
            bits_per_nat=0.5,
            evaluate=evaluate,
            sample=lambda: ("once ", "upon"),
            evaluations=evaluations,
            observe=Heard(),
            **rest,
        )

    return make


# --- evaluations, saving


@pytest.mark.parametrize(("steps", "evaluations"), [(10, 5), (10, 10), (19, 10), (25, 10), (744, 10), (3, 10), (1, 1)])
def test_the_run_is_evaluated_as_often_as_asked_evenly_and_at_its_last_step(make_loop, steps, evaluations):
    loop = make_loop(steps, evaluations=evaluations)
    loop()
    at = [event.step for event in loop.observe.of(Evaluated)]
    assert len(at) == min(evaluations, steps)
    assert at[-1] == steps
    gaps = [after - before for before, after in zip([0, *at], at, strict=False)]
    assert max(gaps) - min(gaps) <= 1


def test_each_evaluation_comes_with_a_sample_and_a_checkpoint(make_loop):
    loop = make_loop(4, evaluations=2)
    loop()
    kinds = [type(event) for event in loop.observe if not isinstance(event, StepDone)]
    assert kinds == [Evaluated, Sampled, Saved] * 2
    assert loop.observe.of(Sampled)[0] == Sampled(step=2, prompt="once ", text="upon")


def test_latest_and_best_are_kept_apart(make_loop):
    loop = make_loop(4, evaluations=4, scores={1: 5.0, 2: 3.0, 3: 4.0, 4: 4.5})
    state = loop()
    assert (state.best_step, state.best_held_out, state.last_held_out) == (2, 3.0, 4.5)
    assert [info.step for info in loop.keeper.folder.checkpoints()] == [2, 4]
    assert loop.keeper.folder.best_checkpoint().name == "step-000002"
    assert [event.is_best for event in loop.observe.of(Evaluated)] == [True, True, False, False]


def test_a_run_shorter_than_any_interval_is_saved_at_its_end(make_loop):
    loop = make_loop(1, evaluations=10)
    loop()
    assert [info.step for info in loop.keeper.folder.checkpoints()] == [1]
    assert (loop.keeper.folder.path / "model.safetensors").exists()


def test_a_stop_saves_first_and_its_last_look_is_in_no_checkpoint(make_loop):
    loop = make_loop(10, evaluations=2, scores={3: 1.0})
    state = loop(stop_after(3))
    assert (state.step, state.best_step, state.best_held_out) == (3, 3, 1.0)
    assert [type(event) for event in loop.observe][3:] == [Saved, Evaluated, Sampled]
    saved = loop.keeper.folder.load_checkpoint(loop.keeper.folder.latest_checkpoint())
    assert saved.state["progress"]["best_step"] == 0
    assert saved.score is None
    assert loop.progress.best_step == 0


def test_a_stop_where_an_evaluation_is_due_is_an_evaluation_like_any_other(make_loop):
    loop = make_loop(10, evaluations=5)
    loop(stop_after(2))
    assert [type(event) for event in loop.observe][2:] == [Evaluated, Sampled, Saved]
    assert loop.progress.best_step == 2


def test_what_a_step_says_is_all_there_is_to_say(make_loop, clock):
    loop = make_loop(10, step=lambda model: Steps(model, clock))
    loop(stop_after(2))
    said = loop.observe.of(StepDone)[1]
    assert said == StepDone(
        step=2,
        steps=10,
        bits_per_character=1.0,
        train=1.0,
        gradient_norm=2.0,
        learning_rates=loop.train_step.optimizer.learning_rates(),
        epoch=0.2,
        tokens_per_second=64.0,
        seconds_left=8.0,
    )


# --- the rate


def fractions(loop):
    loop()
    return list(loop.train_step.fractions.values())


def test_the_rate_is_above_0_at_once_and_reaches_its_peak_and_its_stated_end(make_loop):
    loop = make_loop(10, schedule=ScheduleConfig(warm_up_steps=4, decay_fraction=0.4, final_fraction=0.1))
    assert fractions(loop) == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 0.775, 0.55, 0.325, 0.1])
    peak, used = OptimizerConfig().matrix_learning_rate, loop.observe.of(StepDone)
    assert [event.learning_rates["matrices"] for event in used] == pytest.approx(
        [peak * fraction for fraction in loop.train_step.fractions.values()]
    )


@pytest.mark.parametrize("shape", ["trapezoid", "cosine", "constant"])
@pytest.mark.parametrize("warm_up_steps", [0, 1, 5, 6, 100])
@pytest.mark.parametrize("decay_fraction", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("steps", [1, 5])
def test_no_phase_that_is_empty_or_too_long_breaks_a_run(make_loop, shape, warm_up_steps, decay_fraction, steps):
    schedule = ScheduleConfig(shape=shape, warm_up_steps=warm_up_steps, decay_fraction=decay_fraction)
    used = fractions(make_loop(steps, schedule=schedule, evaluations=1))
    assert len(used) == steps
    assert all(0 < fraction <= 1 for fraction in used)


# --- the plan


def replanning(make_loop, clock, *, seconds, deadline_in, **rest):
    return make_loop(
        100,
        evaluations=1,
        decay_begins=40,
        step=lambda model: Steps(model, clock, seconds=lambda step: seconds),
        deadline=clock.now + deadline_in,
        step_seconds=1.0,
        **rest,
    )


@pytest.mark.parametrize(("seconds", "steps"), [(2.0, 50), (0.5, 200), (1.0, 100), (1.005, 100)])
def test_steps_are_counted_anew_once_before_the_decay(make_loop, clock, seconds, steps):
    loop = replanning(make_loop, clock, seconds=seconds, deadline_in=100.0)
    state = loop()
    assert (state.step, state.steps, state.planned_steps) == (steps, steps, 100)
    assert clock.now <= 200.0 + 1.0
    replanned = [event for event in loop.observe if isinstance(event, Replanned)]
    assert [(event.step, event.old_steps, event.new_steps) for event in replanned] == (
        [] if steps == 100 else [(40, 100, steps)]
    )


def test_a_new_plan_reads_the_text_no_more_often_than_it_is_worth(make_loop, clock):
    loop = replanning(make_loop, clock, seconds=0.5, deadline_in=100.0, most_steps=120.7)
    assert loop().step == 120


def test_after_a_new_plan_the_decay_still_ends_where_it_is_stated(make_loop, clock):
    loop = replanning(make_loop, clock, seconds=2.0, deadline_in=100.0)
    used = fractions(loop)
    assert used[39] == 1.0
    end = loop.schedule.final_fraction
    assert used[40:] == pytest.approx([1 - (1 - end) * step / 10 for step in range(1, 11)])


def test_when_the_time_is_up_already_one_more_step_is_taken(make_loop, clock):
    loop = replanning(make_loop, clock, seconds=10.0, deadline_in=100.0)
    assert loop().step == 41


def test_a_run_counted_in_steps_is_never_planned_again(make_loop, clock):
    loop = make_loop(10, step=lambda model: Steps(model, clock, seconds=lambda step: 100.0))
    assert loop().steps == 10
    assert not loop.observe.of(Replanned)


# --- cooling down


def cool_after(steps, then=Wish.COOL_DOWN):
    """Wishes to cool down after so many steps, and then something."""
    asked = iter([Wish.GO_ON] * (steps - 1) + [Wish.COOL_DOWN])
    return lambda: next(asked, then)


def test_a_run_that_is_to_cool_down_saves_first_and_lets_its_rate_fall_to_the_end(make_loop):
    loop = make_loop(100, evaluations=1)
    state = loop(cool_after(30))
    assert (state.step, state.steps, state.cooled_from) == (36, 100, 30)
    assert [event.step for event in loop.observe.of(Saved)] == [30]
    (begun,) = loop.observe.of(CoolingDown)
    assert (begun.step, begun.steps) == (30, 36)
    used = list(loop.train_step.fractions.values())
    end = loop.schedule.final_fraction
    assert used[29] == 1.0
    assert used[30:] == pytest.approx([1 - (1 - end) * step / 6 for step in range(1, 7)])
    assert [event.step for event in loop.observe.of(Evaluated)] == [36]
    assert [event.steps for event in loop.observe.of(StepDone)][-6:] == [36] * 6


def test_the_run_itself_knows_nothing_of_its_cooling_down(make_loop):
    loop = make_loop(100, evaluations=1)
    loop(cool_after(30))
    assert (loop.progress.step, loop.progress.best_step, loop.progress.cooled_from) == (30, 0, None)
    saved = loop.keeper.folder.load_checkpoint(loop.keeper.folder.latest_checkpoint())
    assert (saved.step, saved.state["progress"]["step"]) == (30, 30)


def test_within_the_decay_the_rate_falls_from_where_it_is(make_loop):
    loop = make_loop(100, evaluations=1)
    loop(cool_after(80))
    used = list(loop.train_step.fractions.values())
    assert len(used) == 80 + 16
    assert used[79] > used[80] > used[81]
    assert used[-1] == pytest.approx(loop.schedule.final_fraction)


def test_a_second_wish_stops_the_cooling_down(make_loop):
    loop = make_loop(100, evaluations=1)
    assert loop(cool_after(30, then=Wish.STOP)).step == 30


def test_nobody_waits_for_a_cooling_down_longer_than_a_minute(make_loop, clock):
    loop = make_loop(1000, evaluations=1, step=lambda model: Steps(model, clock, seconds=lambda step: 10.0))
    assert loop(cool_after(200)).step == 206


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_that_is_at_its_end_is_not_cooled_down(make_loop, steps):
    loop = make_loop(steps, evaluations=1)
    state = loop(cool_after(1))
    assert state.step == 1
    assert not loop.observe.of(CoolingDown)


# --- numbers gone bad


def test_a_skipped_step_is_told_and_counted_and_no_part_of_the_running_loss(make_loop):
    loop = make_loop(5, step=lambda model: Steps(model, losses={3: math.inf}))
    state = loop()
    assert (state.step, state.skipped) == (5, 1)
    assert state.train == 1.0
    assert [event.skipped for event in loop.observe.of(StepDone)] == [False, False, True, False, False]


def test_ten_in_a_row_stop_the_run_with_all_that_one_needs_to_know(make_loop):
    bad = dict.fromkeys(range(4, 14), math.nan)
    loop = make_loop(100, evaluations=50, step=lambda model: Steps(model, losses=bad))
    with pytest.raises(TrainingStopped) as caught:
        loop()
    for words in ("step 13", "loss nan", "gradient norm nan", "matrices 0.02", "step-000012 "[:-1]):
        assert words in str(caught.value)


def test_nine_in_a_row_do_not(make_loop):
    bad = dict.fromkeys([*range(4, 13), *range(14, 23)], math.nan)
    assert make_loop(30, step=lambda model: Steps(model, losses=bad))().skipped == 18


def test_weights_gone_bad_stop_the_run_and_are_never_saved(make_loop):
    loop = make_loop(6, evaluations=3, scores={2: 3.0, 4: math.nan})
    with pytest.raises(TrainingStopped, match=r"held-out loss of nan after step 4 .*step-000002"):
        loop()
    assert [info.step for info in loop.keeper.folder.checkpoints()] == [2]


def test_where_nothing_was_saved_yet_it_says_so(make_loop):
    with pytest.raises(TrainingStopped, match="nothing had been saved yet"):
        make_loop(6, evaluations=3, scores={2: math.inf})()


def test_what_is_saved_is_everything_and_comes_back(make_loop):
    loop = make_loop(4, evaluations=2, step=lambda model: Steps(model, losses={2: math.nan}))
    loop()
    saved = loop.keeper.folder.load_checkpoint(loop.keeper.folder.latest_checkpoint())
    assert Progress(**saved.state["progress"]) == dataclasses.replace(loop.progress)
    assert all(torch.equal(saved.model[name], tensor) for name, tensor in loop.keeper.model.state_dict().items())
