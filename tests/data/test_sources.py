"""Files and folders → one text: what is read, in which order, and what is told."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from pellucid.data import Document, open_sources, read_documents, sources_of_texts
from pellucid.errors import DataError


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, content in {
        "b.md": b"second",
        "a.txt": b"first",
        "code/x.py": b"third",
        "README": b"zeroth",
        "picture.png": b"\x89PNG\r\n",
        "hidden.txt/.secret": b"no",
        ".git/config.txt": b"no",
        "__pycache__/y.py": b"no",
        "data.txt": b"\x00\x01\x02\x03" * 99,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def text_of(sources) -> str:
    return "".join(piece.text for piece in sources.pieces())


def refusal(*paths, **options) -> str:
    with pytest.raises(DataError) as caught:
        open_sources(paths, **options)
    return str(caught.value)


def test_a_folder_is_read_in_the_order_of_its_paths_without_what_is_no_text(folder):
    sources = open_sources([folder])
    assert [Path(document.name).name for document in sources.documents] == ["README", "a.txt", "b.md", "x.py"]
    assert text_of(sources) == "zerothfirstsecondthird"


def test_what_a_folder_leaves_out_is_told(folder):
    (note,) = open_sources([folder]).notes
    assert note.startswith("Left out 2 files of other kinds (")
    assert ".png 1" in note
    assert ".txt 1" in note


def test_files_are_read_in_the_order_given(folder):
    assert text_of(open_sources([folder / "b.md", folder / "a.txt"])) == "secondfirst"


def test_a_named_file_is_read_whatever_it_is_called(tmp_path):
    (tmp_path / "letters.xyz").write_bytes(b"abc")
    assert text_of(open_sources([tmp_path / "letters.xyz"])) == "abc"


def test_a_file_given_twice_is_read_once_and_told(folder):
    sources = open_sources([folder / "a.txt", folder, folder / "code" / ".." / "a.txt"])
    assert text_of(sources) == "firstzerothsecondthird"
    (note,) = (note for note in sources.notes if note.startswith("Given twice, read once: "))
    assert note.count("a.txt") == 2


def test_a_copy_of_a_file_is_left_out_and_told(folder):
    (folder / "copy.txt").write_bytes(b"first")
    sources = open_sources([folder])
    assert text_of(sources) == "zerothfirstsecondthird"
    assert any("Left out as copies" in note and "copy.txt" in note for note in sources.notes)


def test_an_empty_file_among_others_is_left_out_and_told(folder):
    (folder / "void.txt").write_bytes(b"")
    assert any("Left out as empty" in note and "void.txt" in note for note in open_sources([folder]).notes)


def test_changes_are_told(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    sources = open_sources([tmp_path / "a.txt"])
    assert sources.notes == (
        "Dropped the byte-order mark at the start of 1 file.",
        "Turned 2 line ends from CR LF into LF.",
    )
    assert sources.characters == 8
    assert sources.alphabet == "\nenotw"


def test_a_mark_and_cr_lf_do_not_change_what_the_text_is(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (tmp_path / "b.txt").write_bytes(b"one\ntwo\n")
    with_mark, without = (open_sources([tmp_path / name]) for name in ("a.txt", "b.txt"))
    assert with_mark.fingerprint == without.fingerprint
    assert with_mark.alphabet == without.alphabet


def test_each_mark_of_several_files_is_dropped(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_bytes(b"\xef\xbb\xbf" + name.encode())
    assert "\ufeff" not in text_of(open_sources([tmp_path]))


def test_the_fingerprint_sees_text_order_and_bounds():
    prints = [
        sources_of_texts([Document("x", text) for text in texts]).fingerprint
        for texts in (["ab", "c"], ["a", "bc"], ["c", "ab"], ["abc"], ["abd"])
    ]
    assert len(set(prints)) == 5
    digest = hashlib.sha256(hashlib.sha256(b"abc").digest()).hexdigest()
    assert prints[3] == digest


def test_characters_bytes_and_alphabet_are_counted_in_code_points():
    sources = sources_of_texts([Document("x", "é𝄞\0"), Document("y", "é")])
    assert (sources.characters, sources.utf8_bytes, sources.alphabet) == (4, 9, "\0é𝄞")


def test_pieces_say_where_documents_open():
    sources = sources_of_texts([Document("x", "a\n" * 60_000), Document("y", "b")])
    assert [piece.opens for piece in sources.pieces()] == [True, False, True]


def test_a_text_that_changes_between_readings_is_noticed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one")
    sources = open_sources([path])
    path.write_bytes(b"two")
    with pytest.raises(DataError, match=r"a\.txt to stay as it was"):
        text_of(sources)


class TestRefusals:
    def test_no_such_path(self, tmp_path):
        assert "none.txt, which does not exist" in refusal(tmp_path / "none.txt")

    def test_an_empty_file(self, tmp_path):
        (tmp_path / "void.txt").write_bytes(b"")
        assert "nothing in" in (message := refusal(tmp_path / "void.txt"))
        assert "void.txt" in message

    def test_a_mark_alone_is_empty(self, tmp_path):
        (tmp_path / "void.txt").write_bytes(b"\xef\xbb\xbf")
        assert "nothing in" in refusal(tmp_path / "void.txt")

    def test_a_folder_with_nothing_to_read(self, tmp_path):
        assert "but got nothing" in refusal(tmp_path)
        (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n")
        assert ".png 1" in refusal(tmp_path)

    def test_a_picture_that_is_named(self, tmp_path):
        (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n")
        assert "a PNG picture" in refusal(tmp_path / "a.png")

    def test_a_file_in_a_folder_that_is_text_in_another_encoding_is_not_skipped_silently(self, folder):
        (folder / "old.txt").write_bytes("hello".encode("utf-16"))
        assert "UTF-16" in refusal(folder)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
    def test_a_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        assert "can be read only once" in refusal(tmp_path / "pipe")

    def test_half_a_character_in_a_text_in_memory(self):
        with pytest.raises(DataError, match=r"U\+D800, a lone surrogate"):
            sources_of_texts([Document("x", "ab\ud800")])

    def test_no_path_at_all(self):
        assert "some text" in refusal()


def test_a_named_encoding_reads_and_is_told(tmp_path):
    (tmp_path / "a.txt").write_bytes("café".encode("latin-1"))
    sources = open_sources([tmp_path / "a.txt"], encoding="latin-1")
    assert text_of(sources) == "café"
    assert sources.notes == ("Read as latin-1, as asked.",)


def test_names_that_are_no_text_can_be_shown(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    try:
        with open(path, "wb") as file:
            file.write(b"abc")
    except OSError:
        pytest.skip("this file system refuses such names")
    (document,) = open_sources([tmp_path]).documents
    document.name.encode()


def test_documents_can_be_read_whole(folder):
    assert [document.text for document in read_documents([folder / "b.md", folder / "a.txt"])] == ["second", "first"]


class TestOtherFormats:
    def test_a_folder_of_many_formats_is_read_as_one_text(self, tmp_path):
        (tmp_path / "a.html").write_bytes(b"<p>one &amp; only")
        (tmp_path / "b.srt").write_bytes(b"1\n00:00:01,000 --> 00:00:02,000\ntwo\n")
        (tmp_path / "c.jsonl").write_bytes(b'{"text": "three"}\n{"text": "four"}\n')
        (tmp_path / "d.txt.gz").write_bytes(gzip.compress(b"five"))
        sources = open_sources([tmp_path])
        assert text_of(sources) == "one & only\ntwo\nthreefourfive"
        assert [Path(document.name).name for document in sources.documents] == [
            "a.html",
            "b.srt",
            "c.jsonl (text 1)",
            "c.jsonl (text 2)",
            "d.txt.gz",
        ]
        assert [piece.opens for piece in sources.pieces()] == [True] * 5

    def test_the_column_of_a_table_is_chosen_or_asked_for(self, tmp_path):
        (tmp_path / "a.csv").write_bytes(b"id,said,meant\n1,What is it that you want?,Go away at once if you can.\n")
        assert "“said”, “meant”" in refusal(tmp_path / "a.csv")
        assert "“said”, “meant”" in refusal(tmp_path)
        assert text_of(open_sources([tmp_path], text_column="said")) == "What is it that you want?"

    def test_a_table_without_text_in_a_folder_of_texts_is_left_out_and_told(self, folder):
        (folder / "numbers.csv").write_bytes(b"a,b\n1,2\n")
        sources = open_sources([folder])
        assert text_of(sources) == "zerothfirstsecondthird"
        assert any("Left out a table" in note and "numbers.csv" in note for note in sources.notes)

    def test_rows_with_the_same_text_are_read_once(self, tmp_path):
        (tmp_path / "a.jsonl").write_bytes(b'"one"\n"two"\n"one"\n')
        sources = open_sources([tmp_path / "a.jsonl"])
        assert text_of(sources) == "onetwo"
        assert any("Left out as copies: " in note and "(text 3)" in note for note in sources.notes)

    def test_a_file_whose_name_lies_is_told(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"<!doctype html><p>one")
        assert open_sources([tmp_path / "a.txt"]).notes == ("Read 1 file as a web page, whatever the name says.",)

    def test_rows_that_come_or_go_between_readings_are_noticed(self, tmp_path):
        for after in (b'"one"\n', b'"one"\n"two"\n"three"\n'):
            (tmp_path / "a.jsonl").write_bytes(b'"one"\n"two"\n')
            sources = open_sources([tmp_path / "a.jsonl"])
            (tmp_path / "a.jsonl").write_bytes(after)
            with pytest.raises(DataError, match="to stay as it was"):
                text_of(sources)


class TestEncodings:
    def test_all_files_in_another_encoding_are_counted_and_the_first_is_named(self, folder):
        for name in ("k.txt", "l.txt", "m.txt"):
            (folder / name).write_bytes(("Все счастливые семьи похожи " + name).encode("cp1251"))
        message = refusal(folder)
        assert "k.txt" in message
        assert "and 2 more files that are not UTF-8" in message
        assert "--encoding cp1251" in message

    def test_in_a_folder_a_named_encoding_is_for_files_that_are_not_plainly_utf_8(self, tmp_path):
        (tmp_path / "a.txt").write_bytes("Привет, ".encode("cp1251"))
        (tmp_path / "b.txt").write_bytes("мир".encode())
        sources = open_sources([tmp_path], encoding="cp1251")
        assert text_of(sources) == "Привет, мир"
        assert "Read 1 file as UTF-8, which no other encoding looks like." in sources.notes


class TestWhatIsOdd:
    def test_boilerplate_is_told_and_left_out_only_when_asked(self, tmp_path):
        lines = [f"line {number} of it goes on and on, and" for number in range(400)]
        page = ("\n".join(lines[number * 20 : number * 20 + 20]) + f"\n\n{number + 1}\n\n" for number in range(20))
        start = "*** START OF THE PROJECT GUTENBERG EBOOK X ***\n"
        (tmp_path / "a.txt").write_text(start + "".join(page), encoding="utf-8")
        told, dropped = (open_sources([tmp_path / "a.txt"], drop_boilerplate=asked) for asked in (False, True))
        assert told.notes == (
            "Found what seems no part of the text: a licence around the text (47 characters), 20 page numbers (“1”);"
            " --drop-boilerplate leaves it out.",
        )
        assert text_of(told).startswith(start)
        assert "left out, as asked" in dropped.notes[-1]
        assert text_of(dropped) == "".join("\n".join(lines[n : n + 20]) + "\n\n" for n in range(0, 400, 20))
        assert dropped.characters == len(text_of(dropped))
        assert dropped.fingerprint != told.fingerprint

    def test_look_alike_letters_are_told(self):
        (note,) = sources_of_texts([Document("x", "علی و علي " * 9)]).notes
        assert note.startswith("Look-alike letters: “ي”")


@pytest.mark.parametrize("percent", [-1, 51, 1000])
def test_an_impossible_share_to_hold_out_is_refused(percent):
    with pytest.raises(DataError, match="0 to 50 percent"):
        sources_of_texts([Document("x", "text")], held_out_percent=percent)
