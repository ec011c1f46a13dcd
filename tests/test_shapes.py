import re

from pellucid.shapes import AXES

# That annotations use these words alone is a rule of the house: tests/house/test_names.py.


def test_an_axis_name_is_plain_words_with_a_meaning():
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)?", name) for name in AXES)
    assert all(AXES.values())


def test_no_two_names_mean_the_same():
    assert len(set(AXES.values())) == len(AXES)
