import pytest

from pellucid.train import plan
from pellucid.train.plan import CLOSING_SECONDS, affordable_evaluations, last_step_at, plan_steps
from pellucid.training_config import ScheduleConfig, TrainingConfig


@pytest.fixture(autouse=True)
def _it_is_1000_seconds(monkeypatch):
    class Clock:
        monotonic = staticmethod(lambda: 1000.0)

    monkeypatch.setattr(plan, "time", Clock)


def planned(config, schedule=None, deadline=None, **rest):
    schedule = schedule or ScheduleConfig(decay_fraction=0.6)
    return plan_steps(config, schedule, deadline=deadline, **{"step_seconds": 0.5, "pause_seconds": 2.0, **rest})


def test_time_runs_from_enter_and_leaves_room_for_the_last_evaluation_and_the_closing():
    assert last_step_at(900.0, 5.0, 3.0) == 900.0 + 300.0 - CLOSING_SECONDS - 3.0
    assert last_step_at(900.0, None, 3.0) is None


def test_evaluations_are_fewer_where_they_would_eat_the_time():
    assert affordable_evaluations(10, 1300.0, 2.0) == 10
    assert affordable_evaluations(10, 1020.0, 2.0) == 2
    assert affordable_evaluations(10, 990.0, 2.0) == 1


def test_steps_fill_the_time_that_evaluations_leave():
    progress = planned(TrainingConfig(minutes=5.0, evaluations=10), deadline=1300.0)
    assert progress.steps == progress.planned_steps == (300 - 10 * 2) / 0.5
    assert progress.decay_begins == 560 - 336


def test_a_text_that_is_used_up_before_ends_the_run():
    config = TrainingConfig(minutes=5.0, evaluations=10)
    assert planned(config, deadline=1300.0, most_steps=99.9).steps == 99
    assert planned(config, deadline=1300.0, most_steps=0.5).steps == 10
    assert planned(TrainingConfig(steps=7), most_steps=3.0).steps == 7


def test_steps_that_are_given_are_taken():
    progress = planned(TrainingConfig(steps=7))
    assert (progress.steps, progress.decay_begins) == (7, 3)


@pytest.mark.parametrize("deadline", [1000.0, 900.0])
def test_where_no_time_is_left_each_evaluation_has_a_step(deadline):
    assert planned(TrainingConfig(minutes=0.1, evaluations=4), deadline=deadline).steps == 4


@pytest.mark.parametrize(
    ("schedule", "begins"),
    [
        (ScheduleConfig(decay_fraction=0.0), 10),
        (ScheduleConfig(decay_fraction=1.0), 0),
        (ScheduleConfig(shape="cosine"), 10),
        (ScheduleConfig(shape="constant"), 10),
    ],
)
def test_only_a_trapezoid_has_a_place_where_its_decay_begins(schedule, begins):
    assert planned(TrainingConfig(steps=10), schedule).decay_begins == begins
