"""Text as HTML: nothing that is not known to be markup becomes markup."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.pages import Html, escaped, facts, figure, foreign, joined, paragraph, table, visible


class _Reader(HTMLParser):
    """What a browser would make of a piece: its tags and its text."""

    def __init__(self, piece: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(piece)
        self.close()

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text())
def test_any_text_is_shown_and_none_of_it_is_obeyed(text):
    read = _Reader(foreign(text, block=True))
    assert read.tags == ["div"]
    assert read.text == visible(text)


def test_markup_in_a_text_is_text_in_every_piece():
    attack = "<img src=x onerror=alert(1)>\"'&"
    for piece in (
        escaped(attack),
        foreign(attack),
        paragraph(attack),
        table([attack], [[attack]]),
        facts([(attack, attack)]),
        figure(Html("<svg></svg>"), attack),
        joined([attack, attack], between=attack),
    ):
        assert "<img" not in piece
        assert attack in _Reader(piece).text


def test_what_is_markup_already_stays():
    assert joined([Html("<b>a</b>"), "&"], between=Html("<br>")) == "<b>a</b><br>&amp;"


@pytest.mark.parametrize(
    ("hidden", "shown"), [("\x00", "␀"), ("\x1b", "␛"), ("\x7f", "␡"), ("\u202e", "⟨U+202E⟩"), ("\ud800", "⟨U+D800⟩")]
)
def test_what_a_page_would_obey_or_lose_is_written_out(hidden, shown):
    assert visible(f"a{hidden}b") == f"a{shown}b"
    visible(hidden).encode("utf-8")


def test_marks_that_are_part_of_writing_stay():
    text = "می\u200cخواهم\u200e क्\u200dष \u200f\t\n"
    assert visible(text) == text


def test_a_column_of_figures_stands_flush_right_and_one_of_names_does_not():
    rows = table(["name", "bits", "kept"], [["a", "2.1", ""], ["3", "−0.5", "1,200"]])
    assert rows.count('<td class="number">') == 4
    assert "<td>3</td>" in rows


def test_a_table_may_be_empty():
    assert "<tbody></tbody>" in table(["name"], [])
