from collections import Counter

import pytest

from pellucid.data.reading.decoding import LINE_ENDS_CHANGED
from pellucid.data.reading.rows import WITHOUT_TEXT, text_of_row


def test_text_has_line_ends_as_everywhere_and_they_are_counted():
    changes = Counter()
    assert text_of_row("a\r\nb\r\n", changes) == "a\nb\n"
    assert changes[LINE_ENDS_CHANGED] == 2
    assert not changes[WITHOUT_TEXT]


@pytest.mark.parametrize("value", [None, 7, "", " \n", ["a"]])
def test_what_is_no_text_is_counted_and_left_out(value):
    changes = Counter()
    assert text_of_row(value, changes) is None
    assert changes[WITHOUT_TEXT] == 1
