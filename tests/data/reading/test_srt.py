"""Subtitles: what is said, without numbers, times and markup."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading.srt import Subtitles

CUES = """1
00:00:01,000 --> 00:00:02,500
- <i>Who's there?</i>
- {\\an8}Nay, answer me.

2
00:00:03,000 --> 00:00:04,000 X1:40 X2:600
<font color="#fff">Long live</font> the king!

3
00:00:05,000 --> 00:00:06,000
42

4
00:00:07.000 --> 00:00:08.000
I <3 it: 1 < 2 > 0
"""


@pytest.fixture
def file(tmp_path):
    def write(content: str) -> Subtitles:
        (tmp_path / "x.srt").write_bytes(content.encode())
        return Subtitles(tmp_path / "x.srt")

    return write


def read(reader: Subtitles) -> str:
    return "".join(reader.blocks())


def test_numbers_times_and_markup_go_and_what_is_said_stays(file):
    assert read(file(CUES)).split("\n") == [
        "- Who's there?",
        "- Nay, answer me.",
        "Long live the king!",
        "42",
        "I <3 it: 1 < 2 > 0",
        "",
    ]


def test_line_ends_of_windows_and_a_mark_change_nothing(file):
    plain = read(file(CUES))
    assert read(file("\ufeff" + CUES.replace("\n", "\r\n"))) == plain


def test_a_number_at_the_very_end_is_said(file):
    assert read(file("1\n00:00:01,000 --> 00:00:02,500\nHow many?\n12")) == "How many?\n12\n"


def test_cues_without_numbers_or_blank_lines_are_read(file):
    assert read(file("00:01,000 --> 00:02,500\none\n00:03,000 --> 00:04,000\ntwo")) == "one\ntwo\n"


def test_an_empty_file_says_nothing(file):
    assert read(file("")) == ""


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(st.characters(categories=["L", "P"], exclude_characters="<>{}"), min_size=1), max_size=9))
def test_lines_written_as_cues_come_back(tmp_path_factory, said):
    said = [line.strip() for line in said if line.strip()]
    cues = "".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{line}\n\n" for n, line in enumerate(said, 1))
    path = tmp_path_factory.mktemp("srt") / "x.srt"
    path.write_bytes(cues.encode())
    assert "".join(Subtitles(path).blocks()) == "".join(f"{line}\n" for line in said)
