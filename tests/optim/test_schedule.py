import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import ConfigError
from pellucid.optim.schedule import constant, cosine, learning_rate_fraction, trapezoid
from pellucid.training_config import ScheduleConfig

SHAPES = ["trapezoid", "cosine", "constant"]


def fractions(total, **settings):
    config = ScheduleConfig(**settings)
    return [learning_rate_fraction(step, total, config) for step in range(1, total + 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_steps_with_four_of_warm_up_start_above_zero_and_peak_at_step_four(shape):
    rates = fractions(10, shape=shape, warm_up_steps=4, final_fraction=0.1)
    assert rates[0] == 0.25
    assert rates[3] == 1
    assert rates[9] == (1 if shape == "constant" else 0.1)


def test_the_trapezoid_rises_stays_and_falls_in_straight_lines():
    rates = fractions(10, shape="trapezoid", warm_up_steps=2, decay_fraction=0.4, final_fraction=0.2)
    assert rates == pytest.approx([0.5, 1, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])


def test_the_cosine_is_halfway_down_in_the_middle():
    assert cosine(6, 10, 2, 0.0) == pytest.approx(0.5)
    assert cosine(6, 10, 2, 0.2) == pytest.approx(0.6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("warm_up_steps", [0, 1, 4, 10, 11, 1000])
@pytest.mark.parametrize("decay_fraction", [0.0, 0.05, 0.6, 1.0])
@pytest.mark.parametrize("total", [0, 1, 2, 10])
def test_empty_phases_give_numbers(shape, warm_up_steps, decay_fraction, total):
    config = ScheduleConfig(shape=shape, warm_up_steps=warm_up_steps, decay_fraction=decay_fraction, final_fraction=0.1)
    rates = [learning_rate_fraction(step, total, config) for step in range(1, total + 3)]
    assert all(0 < rate <= 1 for rate in rates)


@pytest.mark.parametrize("warm_up_steps", [0, 4, 10, 1000])
@pytest.mark.parametrize("total", [1, 2, 10, 999])
def test_the_last_step_is_at_the_stated_end_whatever_the_warm_up(warm_up_steps, total):
    settings = {"warm_up_steps": warm_up_steps, "decay_fraction": 0.6, "final_fraction": 0.02}
    assert fractions(total, shape="trapezoid", **settings)[-1] == 0.02
    assert fractions(total, shape="cosine", **settings)[-1] == 0.02
    assert fractions(total, shape="constant", **settings)[-1] == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_no_warm_up_starts_at_the_peak(shape):
    assert fractions(100, shape=shape, warm_up_steps=0)[0] == pytest.approx(1, abs=1e-3)


@given(
    shape=st.sampled_from(SHAPES),
    total=st.integers(1, 300),
    warm_up_steps=st.integers(0, 400),
    decay_fraction=st.floats(0, 1),
    final_fraction=st.floats(0.01, 1),
)
def test_a_rate_rises_once_then_never_rises_again(shape, total, warm_up_steps, decay_fraction, final_fraction):
    rates = fractions(
        total,
        shape=shape,
        warm_up_steps=warm_up_steps,
        decay_fraction=decay_fraction,
        final_fraction=final_fraction,
    )
    peak = rates.index(max(rates))
    assert all(before <= after + 1e-12 for before, after in itertools.pairwise(rates[: peak + 1]))
    assert all(before >= after - 1e-12 for before, after in itertools.pairwise(rates[peak:]))
    assert all(0 < rate <= 1 for rate in rates)


def test_beyond_the_total_the_last_value_holds():
    for shape in SHAPES:
        config = ScheduleConfig(shape=shape, warm_up_steps=2)
        assert learning_rate_fraction(11, 10, config) == learning_rate_fraction(10, 10, config)


def test_before_the_decay_a_raised_total_changes_nothing():
    config = ScheduleConfig(warm_up_steps=5, decay_fraction=0.5)
    for step in range(1, 51):
        assert learning_rate_fraction(step, 100, config) == learning_rate_fraction(step, 150, config)


@pytest.mark.parametrize(("step", "total"), [(0, 10), (-1, 10), (1, -1)])
def test_steps_count_from_one(step, total):
    with pytest.raises(ConfigError, match="counted from 1"):
        learning_rate_fraction(step, total, ScheduleConfig())


def test_the_shapes_are_also_functions_of_plain_numbers():
    assert trapezoid(10, 10, 0, 0, 0.5) == 1
    assert constant(1, 10, 0) == 1
    assert cosine(1, 1, 0, 0.25) == 0.25
