"""What bytes that are no UTF-8 are taken for: the best guess is right, and a close second is named."""

import subprocess
import sys

import pytest

from pellucid.data.reading.encodings import begins_as_utf_8, guesses, marked_encoding, shown_line, unmarked_utf_16

LINES = {
    "GB18030": "床前明月光，疑是地上霜。举头望明月，低头思故乡。",
    "Big5": "床前明月光，疑是地上霜。舉頭望明月，低頭思故鄉。",
    "Shift-JIS": "吾輩は猫である。名前はまだ無い。",
    "EUC-JP": "吾輩は猫である。名前はまだ無い。",
    "EUC-KR": "나 보기가 역겨워 가실 때에는 말없이 고이 보내 드리우리다",
    "cp1251": "Все счастливые семьи похожи друг на друга",
    "KOI8-R": "Все счастливые семьи похожи друг на друга",
    "cp1256": "بشنو از ني چون حکايت مي کند",
    "cp1252": "Longtemps, je me suis couché de bonne heure, déjà",
    "cp1253": "Όλες οι ευτυχισμένες οικογένειες μοιάζουν",
}


@pytest.mark.parametrize("times", [1, 30])
@pytest.mark.parametrize("encoding", LINES)
def test_a_line_and_a_page_in_every_encoding_are_recognised(encoding, times):
    line = LINES[encoding].encode(encoding)
    best = guesses((line + b"\n") * times, line)[0]
    assert (best.encoding, best.line) == (encoding, LINES[encoding])


def test_where_two_are_as_likely_both_are_named():
    text = "Litwo! Ojczyzno moja! ty jesteś jak zdrowie."
    found = guesses(text.encode("cp1250"), text.encode("cp1250"))
    assert {guess.encoding for guess in found} == {"cp1252", "cp1250"}
    assert text in [guess.line for guess in found]


def test_hebrew_too_short_to_tell_is_among_the_guesses():
    text = "בראשית ברא אלהים את השמים ואת הארץ"
    assert text in [guess.line for guess in guesses(text.encode("cp1255"), text.encode("cp1255"))]


def test_a_few_accents_in_a_short_text_are_western():
    text = "un café au lait".encode("latin-1")
    assert guesses(text, text)[0].encoding == "cp1252"


def test_what_reads_the_same_is_not_named_twice():
    found = guesses("déjà vu".encode("cp1252"), "déjà vu".encode("cp1252"))
    assert len({guess.line for guess in found}) == len(found)


def test_marks_name_their_encoding():
    assert marked_encoding("a".encode("utf-16")) == "UTF-16"
    assert marked_encoding("a".encode("utf-32")) == "UTF-32"
    assert marked_encoding(b"\xef\xbb\xbfa") is None


@pytest.mark.parametrize("text", ["an English line\n", "红楼梦 第一回\n", "خط فارسی\n"])
def test_utf_16_without_a_mark_is_recognised_in_both_orders(text):
    assert unmarked_utf_16((text * 9).encode("utf-16-le")) == "UTF-16LE"
    assert unmarked_utf_16((text * 9).encode("utf-16-be")) == "UTF-16BE"


@pytest.mark.parametrize("content", [b"a text with a \0 in it", bytes(range(256)) * 40, b"\0" * 900, b"plain"])
def test_other_bytes_are_no_utf_16(content):
    assert unmarked_utf_16(content) is None


def test_a_shown_line_is_short_and_safe():
    shown = shown_line(b"\n\n  \x1b[31mred " + b"x" * 99 + b"\nnext", "latin-1")
    assert shown.startswith("\\x1b[31mred x")
    assert shown.endswith("…")
    assert len(shown) < 70


def test_a_character_cut_off_at_the_end_of_the_beginning_is_no_error():
    assert begins_as_utf_8("abc€".encode()[:-1])
    assert not begins_as_utf_8(b"caf\xe9!")


def test_the_library_that_guesses_is_not_imported_without_need():
    code = "import sys, pellucid.data; sys.exit('charset_normalizer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
