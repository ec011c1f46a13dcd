"""Bytes → text: what is refused, what is changed, what is kept, and that blocks do not show."""

import codecs
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading.decoding import (
    LINE_ENDS_CHANGED,
    MARK_DROPPED,
    UnclearEncoding,
    binary,
    decoded,
    plainly_utf_8,
)
from pellucid.errors import DataError


def read(content: bytes, *, name: str = "book.txt", encoding: str | None = None, size: int = 1 << 20) -> str:
    return read_and_counted(content, name=name, encoding=encoding, size=size)[0]


def read_and_counted(content: bytes, *, name="book.txt", encoding=None, size=1 << 20) -> tuple[str, Counter[str]]:
    changes: Counter[str] = Counter()
    blocks = (content[start : start + size] for start in range(0, len(content), size))
    return "".join(decoded(blocks, name, encoding, changes)), changes


def refusal(content: bytes, **options) -> str:
    with pytest.raises(DataError) as caught:
        read(content, **options)
    return str(caught.value)


class TestWhatIsChanged:
    def test_a_mark_at_the_start_is_dropped_and_counted(self):
        text, changes = read_and_counted(codecs.BOM_UTF8 + b"word")
        assert (text, changes[MARK_DROPPED]) == ("word", 1)

    def test_a_mark_in_the_middle_is_data(self):
        text, changes = read_and_counted("one\ufefftwo".encode())
        assert (text, changes[MARK_DROPPED]) == ("one\ufefftwo", 0)

    def test_only_one_mark_is_dropped(self):
        assert read(codecs.BOM_UTF8 * 2 + b"word") == "\ufeffword"

    def test_cr_lf_becomes_lf_and_is_counted(self):
        text, changes = read_and_counted(b"one\r\ntwo\r\n")
        assert (text, changes[LINE_ENDS_CHANGED]) == ("one\ntwo\n", 2)

    def test_a_lone_cr_stays(self):
        text, changes = read_and_counted(b"one\rtwo\r")
        assert (text, changes[LINE_ENDS_CHANGED]) == ("one\rtwo\r", 0)

    def test_mixed_line_ends_change_where_they_are_cr_lf(self):
        assert read(b"a\r\r\nb\n\rc\r\n") == "a\r\nb\n\rc\n"


class TestBlocksDoNotShow:
    @settings(deadline=None)
    @given(text=st.text(st.sampled_from("ab\r\n\ufeff€𝄞\u200b\0"), max_size=60), size=st.integers(1, 9))
    def test_any_block_size_gives_what_one_block_gives(self, text, size):
        content = b"letters in front, " * 40 + text.encode()
        assert read(content, size=size) == "letters in front, " * 40 + text.replace("\r\n", "\n")

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 2000])
    def test_the_offset_of_a_bad_byte_counts_from_the_start_of_the_file(self, size):
        content = "é\n".encode() + b"x" * 999 + b"\xff" + b"tail"
        assert "0xFF at byte 1,002 (line 2)" in refusal(content, size=size)


class TestWhatIsRefused:
    def test_one_bad_byte_in_good_utf8_is_named_with_its_place(self):
        message = refusal(("ä" * 500).encode() + b"\xff" + b" and so on")
        assert "book.txt" in message
        assert "0xFF at byte 1,000" in message
        assert "repair or remove that byte" in message

    def test_latin_1_is_shown_as_it_would_read_and_how_to_say_that_it_is_right(self):
        message = refusal("un café au lait".encode("latin-1"))
        assert "0xE9 at byte 6 (line 1)" in message
        assert "“un café au lait”" in message
        assert "--encoding cp1252" in message

    def test_the_line_that_is_shown_is_the_one_with_the_byte(self):
        message = refusal(b"A book\n\nby somebody\n" + "naïveté, déjà vu\n".encode("latin-1") + b"and more\n")
        assert "(line 4); read as cp1252 it would say “naïveté, déjà vu”" in message

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
    def test_utf_16_and_32_with_a_mark_are_shown_and_asked_about(self, encoding):
        mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
        message = refusal(mark + "hello you\nand more".encode(encoding))
        assert f"--encoding {encoding[:6].upper()}" in message
        assert "“hello you”" in message

    @pytest.mark.parametrize("order", ["le", "be"])
    @pytest.mark.parametrize("text", ["plain English text\n", "红楼梦第一回 甄士隐梦幻识通灵\n"])
    def test_utf_16_without_a_mark_is_recognised(self, order, text):
        message = refusal((text * 50).encode(f"utf-16-{order}"))
        assert f"--encoding UTF-16{order.upper()}" in message
        assert f"“{text.strip()}”" in message

    def test_what_is_no_text_is_not_asked_about(self):
        with pytest.raises(DataError, match="binary data") as caught:
            read(bytes(range(256)) * 9)
        assert not isinstance(caught.value, UnclearEncoding)

    def test_an_end_inside_a_character_is_told_apart(self):
        assert "an end inside a character at byte 3 (line 1)" in refusal("abc€".encode()[:-1])

    def test_surrogates_in_utf8_are_refused(self):
        assert "0xED at byte 3" in refusal(b"abc\xed\xa0\x80")

    def test_a_single_zero_byte_is_data(self):
        assert read(b"a text with a \0 in it") == "a text with a \0 in it"

    def test_control_sequences_of_a_file_do_not_reach_the_message(self):
        assert "\x1b" not in refusal(b"\x1b]0;title\x07 caf\xe9")


class TestNamedEncodings:
    @pytest.mark.parametrize(
        "encoding", ["utf-16", "latin-1", "cp1251", "gb18030", "GB18030", "Shift-JIS", "EUC-KR", "KOI8-R", "utf-8-sig"]
    )
    def test_a_named_encoding_is_believed(self, encoding):
        own = {
            "cp1251": "привет",
            "koi8-r": "привет",
            "gb18030": "床前明月光",
            "shift-jis": "こんにちは",
            "euc-kr": "나 보기가",
        }
        text = own.get(encoding.lower(), "café")
        assert read((text + "\r\n").encode(encoding), encoding=encoding) == text + "\n"

    def test_a_byte_that_does_not_fit_the_named_encoding_has_an_offset(self):
        assert "ascii text in" in (message := refusal(b"abc\xe9", encoding="ascii"))
        assert "0xE9 at byte 3" in message

    @pytest.mark.parametrize("name", ["klingon", "rot13", "base64", "a\0b"])
    def test_what_names_no_text_encoding_is_refused(self, name):
        with pytest.raises(DataError, match="text encoding"):
            read(b"abc", encoding=name)


def test_text_in_any_encoding_is_not_binary():
    for encoding in ("utf-8", "latin-1", "utf-16", "utf-16-le", "utf-32"):
        assert not binary(("naïve text\n" * 9).encode(encoding))
    assert binary(b"\0\1\2\3" * 99)


def test_what_is_plainly_utf_8_is_known():
    assert plainly_utf_8(["Füchse".encode()[:2], "Füchse".encode()[2:]])
    assert not plainly_utf_8([b"ASCII alone"])
    assert not plainly_utf_8(["Füchse".encode("latin-1")])
    assert not plainly_utf_8(["Fü".encode()[:-1]])


def test_a_text_that_happens_to_begin_as_utf_8_is_asked_about_all_the_same():
    text = "Ð±ÐÐÐ".encode("latin-1") + b"\n" + "Все счастливые семьи похожи друг на друга\n".encode("cp1251") * 9
    assert "--encoding cp1251" in refusal(text)


def test_a_long_line_is_shown_around_the_byte():
    message = refusal(b"x" * 500 + b" and then caf\xe9 " + b"y" * 500)
    assert "caf\u00e9" in message
    assert "x" * 60 not in message
