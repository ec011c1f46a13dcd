"""Interleaving."""

from pellucid.bench import interleave, ratio


def test_everyone_is_first_once():
    order = []
    interleave({name: lambda name=name: float(order.append(name) or 0) for name in "abc"}, rounds=3)
    assert "".join(order) == "abcbcacab"


def test_figures_are_kept_by_round():
    figures = iter(range(6))
    assert interleave({"a": lambda: next(figures), "b": lambda: next(figures)}, rounds=3) == {
        "a": [0, 3, 4],
        "b": [1, 2, 5],
    }


def test_nobody_to_measure_gives_nothing():
    assert interleave({}, rounds=2) == {}


def test_a_machine_that_slows_down_does_not_change_the_ratio():
    speeds = [1.0, 5.0, 0.7, 20.0, 3.0]
    assert ratio([2 * speed for speed in speeds], speeds) == 2


def test_one_disturbed_round_does_not_either():
    assert ratio([2.0, 2.0, 90.0], [1.0, 1.0, 1.0]) == 2
