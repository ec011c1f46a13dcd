import inspect
import re

import pytest

from pellucid import errors
from pellucid.errors import ExportError, PellucidError, TrainingStopped, UserError, shown

ALL = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, PellucidError)]


@pytest.mark.parametrize("kind", ALL)
def test_an_error_is_a_sentence_of_what_was_expected_what_came_and_what_to_do(kind):
    error = kind("3 apples", came="2", remedy="buy one")
    assert str(error) == "Expected 3 apples, but got 2: buy one."
    assert (error.expected, error.came, error.remedy) == ("3 apples", "2", "buy one")


def test_the_tree_in_the_docstring_is_the_tree():
    drawn = dict(reversed(row) for row in re.findall(r"^(\W{4,})(\w+) {2}", errors.__doc__, re.MULTILINE))
    depth = {name: len(indent) // 4 for name, indent in drawn.items()}
    real = {kind.__name__: sum(issubclass(parent, PellucidError) for parent in kind.__mro__) for kind in ALL}
    assert depth == real


def test_what_the_user_can_mend_is_a_value_error_and_a_stop_is_not():
    assert issubclass(UserError, ValueError)
    assert not issubclass(TrainingStopped, UserError)
    assert all(issubclass(kind, UserError) for kind in ALL if kind not in (PellucidError, ExportError, TrainingStopped))


def test_no_part_of_the_sentence_may_be_left_out():
    with pytest.raises(TypeError):
        UserError("3 apples")


def test_what_a_file_says_is_quoted_in_a_line_or_two():
    assert shown("blk\x1b[2J") == r"'blk\x1b[2J'"
    assert len(shown("x" * 5000)) < 110
