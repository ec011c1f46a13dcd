"""Whoever takes training steps, here or elsewhere."""

import pytest

from pellucid.bench.contender import Elsewhere, Here, own, plain
from pellucid.errors import PellucidError
from pellucid.train.variant import Variant, loss_function
from tests.bench.small_load import small_load


def test_steps_are_counted_on_from_turn_to_turn():
    contender = Here(float)
    assert contender.take(2).losses + contender.take(2).losses == [1, 2, 3, 4]


def test_every_step_is_timed_by_itself(monkeypatch):
    ticks = iter([0.0, 1.0, 1.0, 4.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    assert Here(float).take(2).seconds == [1, 3]


def test_memory_is_what_is_held_and_what_a_step_adds():
    load = small_load()
    model = load.model()
    weights = sum(parameter.nbytes for parameter in model.parameters())
    contender = own(load, model, loss_function(model, Variant()))
    contender.take(1)
    peak = contender.peak_bytes()
    assert 4 * weights < peak < 40 * weights  # weights, gradients, two means, and activations
    assert contender.done == 2


def test_the_plain_loop_is_the_same_elsewhere():
    load = small_load()
    here, elsewhere = plain(load), Elsewhere(load, threads=1)
    assert elsewhere.take(3).losses == pytest.approx(here.take(3).losses, rel=1e-6)
    assert elsewhere.peak_bytes() == pytest.approx(here.peak_bytes(), rel=0.2)
    elsewhere.close()
    assert elsewhere.process.exitcode == 0


def test_a_process_that_has_ended_is_told():
    elsewhere = Elsewhere(small_load("default"), threads=1)  # which is no shape for the plain loop
    with pytest.raises(PellucidError, match="its end"):
        elsewhere.take(1)
    elsewhere.close()
