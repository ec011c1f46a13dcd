import math

from pellucid.pages.quantities import counted, duration


def test_one_thing_is_one_and_none_are_many():
    assert [counted(number, "step") for number in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]


def test_a_duration_that_is_unknown_is_called_so():
    assert duration(math.inf) == duration(math.nan) == "unknown time"
    assert duration(-1.0) == "0 s"
