"""Files and folders → one text: what is read, in which order, and what is told."""

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
