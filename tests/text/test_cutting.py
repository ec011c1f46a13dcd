import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import TokenizerError
from pellucid.text import TokenSpan, spans, spans_of_ids, visible
from tests.text.awkward_texts import AWKWARD


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (b" the", "·the"),
        (b"\n\n", "↵↵"),
        (b"\t\r", "⇥␍"),
        ("癖".encode()[:2], "⟨E7 99⟩"),
        ("癖".encode()[2:], "⟨96⟩"),
        ("é癖".encode()[1:-1], "⟨A9 E7 99⟩"),
        ("癖".encode(), "癖"),
        (b"a\xff\xfeb", "a⟨FF FE⟩b"),
        (b"\x1b[31m", "⟨1B⟩[31m"),
        (b"\x00\x7f", "⟨00⟩⟨7F⟩"),
        ("\u202eevil".encode(), "⟨U+202E⟩evil"),
        ("\u0301a".encode(), "◌\u0301a"),
        ("\u200d\ufeff\u2028".encode(), "⟨U+200D⟩⟨U+FEFF⟩⟨U+2028⟩"),
        ("\xa0".encode(), "⍽"),
        (b"[/b]<img>", "[/b]<img>"),
        (b"", ""),
    ],
)
def test_bytes_are_shown_so_that_nothing_is_missed(token, shown):
    assert visible(token) == shown


@given(st.binary() | st.text(st.characters(exclude_categories=["Cs"])).map(str.encode))
def test_what_is_shown_is_one_line_that_acts_on_no_terminal(token):
    shown = visible(token)
    assert shown.isprintable()
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") for character in shown)
    assert not unicodedata.category(shown[:1] or " ").startswith("M")


@pytest.mark.parametrize("text", AWKWARD, ids=lambda text: ascii(text)[:24])
def test_the_spans_of_a_text_are_its_bytes(byte_pairs, text):
    assert b"".join(span.token for span in spans(byte_pairs, text)) == text.encode()


def test_halves_of_characters_are_told(byte_pairs):
    cut = spans(byte_pairs, "the 癖")
    assert [span.shown for span in cut] == ["the", "·", "⟨E7⟩", "⟨99⟩", "⟨96⟩"]
    assert [span.is_part_of_character for span in cut] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("token", "lines"),
    [
        (b"to", ["to"]),
        (b"\n", ["↵", ""]),
        (b" \n\n  if", ["·↵", "↵", "··if"]),
        (b"\xe7\x99\n", ["⟨E7 99⟩↵", ""]),
        (b"", [""]),
    ],
)
def test_a_span_tells_where_new_lines_begin(token, lines):
    assert TokenSpan(1, token, visible(token), is_special=False).lines == lines


def test_special_tokens_are_shown_by_name_when_they_are_tokens(byte_pairs):
    span, *others = spans(byte_pairs, "<|endoftext|>", allow_special=True)
    assert (span.shown, span.token, span.is_special, others) == ("<|endoftext|>", b"", True, [])
    assert not any(span.is_special for span in spans(byte_pairs, "<|endoftext|>"))


def test_ids_outside_the_vocabulary_have_no_span(byte_pairs):
    with pytest.raises(TokenizerError, match="1024"):
        list(spans_of_ids(byte_pairs, [5, 1024]))
