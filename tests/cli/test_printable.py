import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.cli.printable import printable


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf"])))
def test_ordinary_text_is_left_alone(text):
    assert printable(text) == text


@given(st.text(st.characters()))
def test_no_control_character_is_left_save_newline_and_tab(text):
    left = {c for c in printable(text) if unicodedata.category(c) in ("Cc", "Cs")}
    assert left <= {"\n", "\t"}


@pytest.mark.parametrize("kept", ["a\n\tb", "👨‍👩‍👧", "a\u200bb", "कि", "שלום", "[bold]x[/bold]"])
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
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("\x7f", "␡"),
        ("\udc80", "⟨U+DC80⟩"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(attack, shown):
    assert printable(attack) == shown
