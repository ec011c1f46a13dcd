"""Rates of matrix products; what is timed is replaced, so that no test waits for a clock."""

import pytest

from pellucid.train import ceiling
from pellucid.train.ceiling import Product, product_speedup, seconds


def test_the_median_of_durations_is_taken(monkeypatch):
    ticks = iter([0, 1, 10, 15, 20, 22])  # durations 1, 5, 2
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    assert seconds(lambda: None, at_least=3, budget=0) == 2


def test_an_action_is_repeated_until_the_budget_is_used(monkeypatch):
    ticks, done = iter(range(100)), []
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    seconds(lambda: done.append(1), at_least=1, budget=7)
    assert len(done) == 7


def test_the_work_of_a_product_is_counted():
    assert Product("float32", rows=3, d_in=5, d_out=7).flop == 2 * 3 * 5 * 7


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_rate_is_work_by_time(monkeypatch, precision):
    monkeypatch.setattr(ceiling, "seconds", lambda action, **rest: 0.5)
    assert Product(precision, 4, 4, 4).flop_per_second() == 256


def test_a_speedup_is_narrow_by_wide(monkeypatch):
    monkeypatch.setattr(ceiling, "seconds", lambda product, **rest: {2: 1.0, 4: 3.0}[product.x.itemsize])
    assert product_speedup(8, 8, 8) == 3
