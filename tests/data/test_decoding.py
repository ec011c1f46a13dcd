"""Bytes → text: what is refused, what is changed, what is kept, and that blocks do not show."""

import codecs
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import decoding
from pellucid.data.decoding import PIECE_CHARACTERS, TextFile, cut_pieces, printable
from pellucid.errors import DataError


@pytest.fixture
def file(tmp_path):
    def write(content: bytes, name: str = "book.txt", **options) -> TextFile:
        path = tmp_path / name
        path.write_bytes(content)
        return TextFile(path, **options)

    return write


def read(reader: TextFile) -> str:
    return "".join(reader.pieces())


def refusal(reader: TextFile) -> str:
    with pytest.raises(DataError) as caught:
        read(reader)
    return str(caught.value)


class TestWhatIsChanged:
    def test_a_mark_at_the_start_is_dropped_and_counted(self, file):
        reader = file(codecs.BOM_UTF8 + b"word")
        assert (read(reader), reader.marks_dropped) == ("word", 1)

    def test_a_mark_in_the_middle_is_data(self, file):
        reader = file("one\ufefftwo".encode())
        assert (read(reader), reader.marks_dropped) == ("one\ufefftwo", 0)

    def test_only_one_mark_is_dropped(self, file):
        assert read(file(codecs.BOM_UTF8 * 2 + b"word")) == "\ufeffword"

    def test_cr_lf_becomes_lf_and_is_counted(self, file):
        reader = file(b"one\r\ntwo\r\n")
        assert (read(reader), reader.crlf_changed) == ("one\ntwo\n", 2)

    def test_a_lone_cr_stays(self, file):
        reader = file(b"one\rtwo\r")
        assert (read(reader), reader.crlf_changed) == ("one\rtwo\r", 0)

    def test_mixed_line_ends_change_where_they_are_cr_lf(self, file):
        assert read(file(b"a\r\r\nb\n\rc\r\n")) == "a\r\nb\n\rc\n"

    def test_reading_twice_gives_and_counts_the_same(self, file):
        reader = file(codecs.BOM_UTF8 + b"a\r\nb")
        assert (read(reader), reader.crlf_changed) == (read(reader), reader.crlf_changed) == ("a\nb", 1)


class TestBlocksDoNotShow:
    @settings(deadline=None)
    @given(text=st.text(st.sampled_from("ab\r\n\ufeff€𝄞\u200b\0"), max_size=60), size=st.integers(1, 9))
    def test_any_block_size_gives_what_one_block_gives(self, tmp_path_factory, text, size):
        path = tmp_path_factory.mktemp("blocks") / "x.txt"
        path.write_bytes(b"letters in front, " * 40 + text.encode())
        whole = read(TextFile(path))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decoding, "READ_BYTES", size)
            assert read(TextFile(path)) == whole
        assert whole == "letters in front, " * 40 + text.replace("\r\n", "\n")

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
    def test_the_offset_of_a_bad_byte_counts_from_the_start_of_the_file(self, file, monkeypatch, size):
        monkeypatch.setattr(decoding, "READ_BYTES", size)
        assert "0xFF at byte 1,002 (line 2)" in refusal(file("é\n".encode() + b"x" * 999 + b"\xff" + b"tail"))


class TestPieces:
    @settings(deadline=None)
    @given(
        st.lists(
            st.sampled_from(["word " * 200, "line\n" * 150, "\n" * 70, "x" * 1000, "  indented\n" * 90]), max_size=9
        )
    )
    def test_pieces_join_to_the_text_and_are_short(self, parts):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decoding, "PIECE_CHARACTERS", 500)
            pieces = list(cut_pieces(parts))
        assert "".join(pieces) == "".join(parts)
        assert all(1 <= len(piece) <= 500 for piece in pieces)

    def test_cuts_do_not_depend_on_the_blocks(self):
        text = "some words in a line\n\n  and an indented one\n" * 9000
        blocks = [text[start : start + 777] for start in range(0, len(text), 777)]
        assert list(cut_pieces(blocks)) == list(cut_pieces([text]))

    def test_a_cut_falls_between_two_lines_that_touch(self):
        pieces = list(cut_pieces(["a line\n\n  indented\nanother\n" * 9000]))
        assert len(pieces) > 3
        assert all(left[-2:] in ("d\n", "r\n") and right[0] == "a" for left, right in itertools.pairwise(pieces))

    def test_a_text_without_a_space_is_cut_at_the_limit(self):
        assert [len(piece) for piece in cut_pieces(["x" * (2 * PIECE_CHARACTERS + 5)])] == [
            PIECE_CHARACTERS,
            PIECE_CHARACTERS,
            5,
        ]

    def test_an_empty_file_has_no_piece(self, file):
        assert list(file(b"").pieces()) == []


class TestWhatIsRefused:
    def test_one_bad_byte_in_good_utf8_is_named_with_its_place(self, file):
        content = ("ä" * 500).encode() + b"\xff" + b" and so on"
        message = refusal(file(content))
        assert "book.txt" in message
        assert "0xFF at byte 1,000" in message
        assert "repair or remove that byte" in message

    def test_latin_1_is_shown_as_it_would_read(self, file):
        message = refusal(file("un café au lait".encode("latin-1")))
        assert "0xE9 at byte 6 (line 1)" in message
        assert "“un café au lait”" in message
        assert "iconv -f WINDOWS-1252 -t UTF-8" in message

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
    def test_utf_16_and_32_with_a_mark_are_called_by_name(self, file, encoding):
        mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
        message = refusal(file(mark + "hello".encode(encoding)))
        assert encoding[:6].upper() in message
        assert "iconv -f UTF" in message

    @pytest.mark.parametrize(("encoding", "order"), [("utf-16-le", "little"), ("utf-16-be", "big")])
    def test_utf_16_without_a_mark_is_recognised(self, file, encoding, order):
        assert f"UTF-16 ({order}-endian)" in refusal(file(("plain English text\n" * 50).encode(encoding)))

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG picture"),
            (b"%PDF-1.7\n", "a PDF document"),
            (b"PK\x03\x04\x14\x00", "a ZIP archive"),
            (b"\x1f\x8b\x08\x00", "a gzip file"),
            (bytes(range(256)) * 9, "binary data"),
        ],
    )
    def test_what_is_no_text_is_called_by_name(self, file, content, words):
        message = refusal(file(content))
        assert words in message
        assert "plain text" in message

    def test_an_end_inside_a_character_is_told_apart(self, file):
        assert "an end inside a character at byte 3 (line 1)" in refusal(file("abc€".encode()[:-1]))

    def test_surrogates_in_utf8_are_refused(self, file):
        assert "0xED at byte 3" in refusal(file(b"abc\xed\xa0\x80"))

    def test_a_folder_or_missing_file_is_a_sentence(self, tmp_path):
        assert "to read" in refusal(TextFile(tmp_path / "none.txt"))

    def test_a_single_zero_byte_is_data(self, file):
        assert read(file(b"a text with a \0 in it")) == "a text with a \0 in it"

    def test_control_sequences_of_a_file_do_not_reach_the_message(self, file):
        message = refusal(file(b"\x1b]0;title\x07 caf\xe9", name="a\x1b[31mb.txt"))
        assert "\x1b" not in message
        assert "a\\x1b[31mb.txt" in message


class TestNamedEncodings:
    @pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "cp1251", "gb18030", "shift-jis", "utf-8-sig"])
    def test_a_named_encoding_is_believed(self, file, encoding):
        text = {"cp1251": "привет", "gb18030": "床前明月光", "shift-jis": "こんにちは"}.get(encoding, "café")
        assert read(file((text + "\r\n").encode(encoding), encoding=encoding)) == text + "\n"

    def test_a_byte_that_does_not_fit_the_named_encoding_has_an_offset(self, file):
        assert "ascii text in" in (message := refusal(file(b"abc\xe9", encoding="ascii")))
        assert "0xE9 at byte 3" in message

    @pytest.mark.parametrize("name", ["klingon", "rot13", "base64", "a\0b"])
    def test_what_names_no_text_encoding_is_refused(self, file, name):
        with pytest.raises(DataError, match="text encoding"):
            file(b"abc", encoding=name)


@pytest.mark.parametrize("text", ["plain", "漢字", "e\u0301", "👨‍👩‍👧"[:1]])
def test_printable_text_stays(text):
    assert printable(text) == text


@pytest.mark.parametrize("text", ["\x1b", "\u202e", "\udcff", "\n", "\u200b"])
def test_what_could_move_or_hide_text_is_spelled_out(text):
    assert printable(text).isascii()
