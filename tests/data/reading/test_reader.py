"""What all readers share: one document unless they say otherwise, and changes that become sentences."""

from collections import Counter

import pytest

from pellucid.data.reading.plain import PlainText
from pellucid.data.reading.reader import ReadingOptions, told
from pellucid.errors import DataError


def test_a_file_is_one_document_that_can_be_read_again(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n")
    reader = PlainText(tmp_path / "a.txt")
    for _ in range(2):
        assert ["".join(blocks) for blocks in reader.documents()] == ["one\n"]
        assert sum(reader.changes.values()) == 2


def test_an_encoding_that_does_not_exist_is_refused_at_once(tmp_path):
    with pytest.raises(DataError, match="klingon"):
        PlainText(tmp_path / "none.txt", ReadingOptions(encoding="klingon"))


def test_changes_are_told_with_their_numbers_and_none_is_not_told():
    assert told(Counter({"Left out {n} row{s}.": 1, "Cut {n} line{s}.": 2000, "Nothing, {n} time{s}.": 0})) == [
        "Left out 1 row.",
        "Cut 2,000 lines.",
    ]


def test_a_name_that_could_act_on_a_terminal_is_spelled_out(tmp_path):
    assert PlainText(tmp_path / "a\x1b[31mb.txt").name.endswith("a\\x1b[31mb.txt")
