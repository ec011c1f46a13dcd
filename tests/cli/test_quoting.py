import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.cli.printable import printable
from pellucid.cli.quoting import CLOSE, LEFT_TO_RIGHT, OPEN, POP, RIGHT_TO_LEFT, cells, one_line, rows, shown
from pellucid.text import graphemes

PERSIAN = "سلام، می‌خواهم 12 کتاب book بخوانم"
EVERYTHING = st.text(st.characters(exclude_categories=[]))
TANGLED = st.text("a سک्é中❤👨👩\u200c\u200d\ufe0f\u202e\u2067\x1b\n\t\u0301\ud800\ufdd0\ufdd1[/b]", max_size=30)
ISOLATES = {LEFT_TO_RIGHT, RIGHT_TO_LEFT, POP}


def words(text):
    return "".join(c for c in text if c not in {*ISOLATES, " ", "\t", "\n"})


def test_white_space_becomes_single_spaces_and_the_rest_is_printable():
    assert one_line(" a\n\n b\t\x1b[1mc[/b] ", 80) == "a b ␛[1mc[/b]"


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcde …"),
        ("中文字典", 8, "中文字典"),
        ("中文字典", 7, "中文字 …"),
        ("ae\u0301b", 2, "ae\u0301 …"),
        ("👨\u200d👩\u200d👧!", 6, "👨\u200d👩\u200d👧 …"),
        ("👨\u200d👩\u200d👧!", 5, " …"),
        ("", 5, ""),
        ("abc", 0, " …"),
    ],
)
def test_it_is_cut_between_graphemes_by_the_cells_they_take(text, most, line):
    assert one_line(text, most) == line


def test_a_joiner_inside_a_word_survives_the_cut():
    assert shown(one_line("می\u200cخواهم", 3), isolate=False) == "می\u200cخ …"


@given(EVERYTHING | TANGLED, st.integers(0, 40))
def test_a_quote_is_never_wider_than_asked_and_holds_nothing_that_acts(text, most):
    line = shown(one_line(text, most), isolate=False)
    assert cells(line.removesuffix(" …")) <= most
    assert line == printable(line)
    assert not {c for c in line if unicodedata.category(c) in ("Cc", "Cs")}


def test_a_quote_written_from_right_to_left_is_isolated_on_a_terminal_only():
    line = f"It writes: {one_line(PERSIAN, 80)} (so far)"
    assert shown(line, isolate=True) == f"It writes: {RIGHT_TO_LEFT}{PERSIAN}{POP} (so far)"
    assert shown(line, isolate=False) == f"It writes: {PERSIAN} (so far)"


def test_a_quote_that_begins_with_our_letters_is_isolated_in_their_direction():
    assert shown(one_line(f"1. Persian: {PERSIAN}", 80), isolate=True)[0] == LEFT_TO_RIGHT


def test_a_quote_written_from_left_to_right_is_left_alone():
    for text in ("To be", "中文", "😀", "123"):
        assert shown(f"It writes: {one_line(text, 80)}", isolate=True) == f"It writes: {text}"


@given(EVERYTHING | TANGLED, EVERYTHING | TANGLED, st.booleans())
def test_whatever_a_line_holds_isolates_are_paired_and_ours(before, text, isolate):
    line = shown(f"{before}{one_line(text, 60)}", isolate=isolate)
    assert not isolate or line.count(POP) == line.count(LEFT_TO_RIGHT) + line.count(RIGHT_TO_LEFT)
    assert isolate or not set(line) & ISOLATES
    depth = 0
    for character in line:
        depth += (character in (LEFT_TO_RIGHT, RIGHT_TO_LEFT)) - (character == POP)
        assert depth in (0, 1)
    left = "".join(c for c in line if c not in ISOLATES)
    assert not {c for c in left if unicodedata.category(c) in ("Cc", "Cs")} - {"\n", "\t"}


def test_marks_of_quotes_in_a_file_name_open_nothing_dangerous():
    line = shown(f"{OPEN}\x1b[2J\u202e{CLOSE}{OPEN}", isolate=True)
    assert line == f"{LEFT_TO_RIGHT}␛[2J⟨U+202E⟩{POP}⟨U+FDD0⟩"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("Step 10 of 20", 8, ["Step 10 ", "of 20"]),
        ("abcdefgh ij", 4, ["abcd", "efgh", "ij"]),
        ("  abcdefgh", 6, ["  abcd", "efgh"]),
        ("中文字典", 5, ["中文", "字典"]),
        ("a\n\nb", 5, ["a", "", "b"]),
        ("", 5, [""]),
        ("क्षि" * 2, 3, ["क्षि", "क्षि"]),
    ],
)
def test_lines_are_broken_between_words_or_else_between_graphemes(text, width, expected):
    assert rows(text, width) == expected


def test_every_row_of_a_quote_is_isolated_in_the_quotes_own_direction():
    broken = rows(f"It writes: {one_line(PERSIAN, 80)}", 16)
    assert len(broken) > 2
    assert all(row.count(RIGHT_TO_LEFT) == row.count(POP) == 1 for row in broken)
    assert broken[0].startswith("It writes: ")


@given(EVERYTHING | TANGLED, EVERYTHING | TANGLED, st.integers(2, 40))
def test_no_row_is_wider_than_the_terminal_and_nothing_is_lost(before, text, width):
    line = f"{before} {one_line(text, 60)}"
    broken = rows(line, width)
    assert words("".join(broken)) == words(shown(line, isolate=False))
    for row in broken:
        bare = "".join(c for c in row if c not in ISOLATES)
        assert cells(bare) <= max(width, *map(cells, graphemes(bare))) if bare else True
        assert "\n" not in row


@pytest.mark.parametrize(
    ("text", "most"), [("👨\u200d👩\u200d👧", 6), ("🏳\ufe0f", 2), ("कि", 2), ("क्षि", 3), ("🇮🇷", 2), ("", 0)]
)
def test_a_text_takes_what_the_least_able_terminal_gives_it(text, most):
    assert cells(text) == most
