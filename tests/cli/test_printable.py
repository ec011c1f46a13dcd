import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.cli.printable import PrintableStream, printable, printable_json
from pellucid.text import GraphemeStream

HIDDEN = [chr(code) for code in (*range(0xE0000, 0xE1000), *range(0xFE00, 0xFE10), *range(0x180B, 0x1810))]
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
EVERYTHING = st.text(st.characters(exclude_categories=[]))
TANGLED = st.text(
    "aسक्é❤👨🏴\U000e0067\U000e0062\U000e007f\u200c\u200d\ufe0f\u202e\u2067\x1b\r\n \u0301\ud800\ufdd0", max_size=20
)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf", "Cn", "Zl", "Zp"], exclude_characters=HIDDEN)))
def test_ordinary_text_is_left_alone(text):
    assert printable(text) == text


@given(EVERYTHING | TANGLED)
def test_no_control_character_is_left_save_newline_and_tab_and_none_that_turns_the_writing(text):
    shown = printable(text)
    assert {c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")} <= {"\n", "\t"}
    assert not set(shown) & set(BIDIRECTIONAL)


@given(EVERYTHING | TANGLED)
def test_what_is_printable_is_printed_as_it_is(text):
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize(
    "kept",
    [
        "a\n\tb",
        "👨\u200d👩\u200d👧",
        "🏳\ufe0f\u200d🌈 ❤\ufe0f\u200d🔥 👍🏽 🏃🏽\u200d♀\ufe0f\u200d➡\ufe0f #\ufe0f\u20e3 🙂\u200d↔\ufe0f",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # Scotland
        "a\u200bb",
        "می\u200cخواهم نامه\u200c ه\u200d",
        "क्\u200dष क्\u200cष कि उत्\u200d",
        "Auf\u200clage",
        "葛\U000e0100城",  # one of the shapes of a Chinese character
        "ᠮ\u180bᠣ",
        "שלום العربية",
        "[bold]x[/bold] [/b]",
        "e\u0301 \xad \ue000",
    ],
)
def test_newlines_joiners_scripts_and_markup_of_others_stay(kept):
    assert printable(kept) == kept


@pytest.mark.parametrize(
    ("attack", "shown"),
    [
        ("\x1b[2J", "␛[2J"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("ab\rc", "ab␍c"),
        ("ab\x08c", "ab␈c"),
        ("\x00", "␀"),
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("a\u061c\u2067b", "a⟨U+061C⟩⟨U+2067⟩b"),
        ("a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"),
        ("\x7f", "␡"),
        ("\udc80", "⟨U+DC80⟩"),
        ("a \u200d b", "a ⟨U+200D⟩ b"),
        ("a\u200d\u200db", "a⟨U+200D⟩⟨U+200D⟩b"),
        ("a\u200c b", "a⟨U+200C⟩ b"),
        ("❤\ufe0f\u200d", "❤\ufe0f⟨U+200D⟩"),
        ("😀\ufe0f\ufe01\U000e0120", "😀\ufe0f⟨U+FE01⟩⟨U+E0120⟩"),
        ("\ufe0f", "⟨U+FE0F⟩"),
        ("a\U000e0068\U000e0069", "a⟨U+E0068⟩⟨U+E0069⟩"),
        ("🏴\U000e0067", "🏴⟨U+E0067⟩"),
        ("\ufdd0", "⟨U+FDD0⟩"),
    ],
)
def test_what_a_terminal_would_obey_or_nobody_would_see_is_shown(attack, shown):
    assert printable(attack) == shown


@given(EVERYTHING | TANGLED, st.lists(st.integers(0, 4), max_size=20))
def test_a_stream_of_graphemes_is_shown_as_the_whole_text_is(text, cuts):
    whole, stream, place, shown = GraphemeStream(), PrintableStream(), 0, ""
    for size in [*cuts, len(text)]:
        shown += stream.push(whole.push(text[place : place + size]))
        place += size
    assert shown + stream.push(whole.finish()) + stream.finish() == printable(text)


def test_a_stream_keeps_only_what_the_next_characters_are_judged_by():
    stream = PrintableStream()
    for _ in range(1000):
        stream.push("abc")
    assert len(stream._text) < 10


@given(EVERYTHING | TANGLED)
def test_json_reads_the_same_and_holds_nothing_that_acts(text):
    line = printable_json({"text": text})
    assert json.loads(line) == {"text": text}
    assert not {c for c in line if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")} | set(line) & set(BIDIRECTIONAL)


def test_json_stays_readable_in_every_script():
    assert printable_json(["中文", "سلام"]) == '["中文", "سلام"]'
