"""Lines of a text that comes in blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.data.reading import lines
from pellucid.data.reading.lines import lines_of
from pellucid.errors import DataError


@given(st.lists(st.text(st.sampled_from("ab\n\r\u2028\v"))))
def test_lines_are_those_of_the_joined_text(blocks):
    found = [line for some in lines_of(blocks, "x") for line in some]
    text = "".join(blocks)
    expected = text.split("\n")
    assert found == (expected[:-1] if expected[-1] == "" else expected)


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 10)
    with pytest.raises(DataError, match=r"at most 10 characters in big\.csv"):
        list(lines_of(["short\n", "12345", "678901"], "big.csv"))
