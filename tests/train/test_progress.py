import math

import pytest

from pellucid.checkpoint import Checkpoint
from pellucid.train import progress as progress_module
from pellucid.train.progress import SMOOTHED, Pace, Progress, figures, restore
from pellucid.train.step import StepResult
from pellucid.yardsticks import Score


def result(skipped=False):
    return StepResult(loss=1.0, tokens=4, gradient_norm=1.0, skipped=skipped, micro_batch_size=4)


@pytest.fixture
def progress():
    return Progress(steps=10, planned_steps=10, decay_begins=6)


def count(progress, *bits, skipped=False):
    for one in bits:
        progress.step += 1
        progress.count(result(skipped), one)


def test_the_train_loss_is_a_plain_mean_at_first_and_then_one_of_about_twenty(progress):
    count(progress, 4.0, 2.0, 3.0, 7.0)
    assert progress.train == pytest.approx(4.0)
    progress.step = 400
    count(progress, 2.0)
    assert progress.train == pytest.approx(SMOOTHED * 4.0 + (1 - SMOOTHED) * 2.0)


def test_skipped_steps_are_counted_in_all_and_in_a_row_and_leave_the_mean_alone(progress):
    for skipped in (True, True, False, True):
        count(progress, math.nan if skipped else 3.0, skipped=skipped)
    assert (progress.skipped, progress.skipped_in_a_row, progress.train) == (3, 1, 3.0)


def test_the_even_passages_choose_the_best_step_and_the_odd_ones_are_told(progress):
    verdicts = []
    for step, bits in enumerate([(4.0, 1.0), (3.0, 9.0), (3.5, 0.5), (3.0, 0.1)], 1):
        progress.step = step
        verdicts.append(progress.judge(Score("model", bits * 2, (1,) * 4)))
    assert verdicts == [True, True, False, False]
    assert (progress.best_step, progress.best_even, progress.best_odd, progress.best_held_out) == (2, 3.0, 9.0, 6.0)
    assert progress.last_held_out == pytest.approx(1.55)


def test_a_score_that_is_no_number_is_never_the_best(progress):
    assert not progress.judge(Score("model", (math.nan,) * 4, (1,) * 4))
    assert progress.best_step == 0


def test_a_checkpoint_gives_it_back(progress):
    progress.step, progress.train = 3, 2.5
    saved = Checkpoint(3, {}, {}, {"progress": vars(progress)}, None, 0)
    assert restore(saved) == progress


def test_the_pace_counts_what_this_process_has_done_and_all_that_was_between(progress, monkeypatch):
    now = iter([100.0, 130.0, 130.0])
    monkeypatch.setattr(progress_module, "time", type("Clock", (), {"monotonic": staticmethod(lambda: next(now))}))
    progress.step = 4
    pace = Pace(progress)
    progress.step = 7
    assert pace.step_seconds() == 10.0
    assert pace.seconds_left() == 30.0


def test_before_the_first_step_the_pace_does_not_divide_by_nothing(progress):
    assert Pace(progress).step_seconds() >= 0


def test_the_figures_of_a_score_keep_its_passages_so_that_runs_can_be_paired():
    told = figures(Score("model", (1.0, 2.0), (3, 4)))
    assert (told["passage_bits"], told["passage_characters"]) == ((1.0, 2.0), (3, 4))


def test_several_processes_cool_down_before_torchrun_loses_patience():
    state = Progress(steps=1000, planned_steps=1000, decay_begins=400, step=300)
    assert (state.cooling_steps(1.0), state.cooling_steps(1.0, together=True)) == (60, 10)
