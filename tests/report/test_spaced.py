"""Some of many."""

import pytest

from pellucid.report.spaced import spaced


@pytest.mark.parametrize(
    ("many", "most", "left"),
    [(3, 5, [0, 1, 2]), (10, 4, [0, 3, 6, 9]), (10, 1, [0]), (0, 3, []), (5, 5, [0, 1, 2, 3, 4])],
)
def test_the_first_the_last_and_some_between_are_left(many, most, left):
    assert spaced(range(many), most) == left
