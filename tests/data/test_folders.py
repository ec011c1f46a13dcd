"""Folders: which files in them are read, in which order, and what is counted as left out."""

import os

import pytest

from pellucid.data.folders import LeftOut, files_in, named_path
from pellucid.errors import DataError


@pytest.fixture
def folder(tmp_path):
    for name in (
        "b.md",
        "a.txt",
        "x/c.HTML",
        "x/d.csv.gz",
        "e.epub",
        "f.pdf",
        "g.png",
        ".hidden.txt",
        "node_modules/h.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def test_known_formats_are_found_in_the_order_of_their_paths(folder):
    left_out = LeftOut()
    found = [path.relative_to(folder).as_posix() for path in files_in(folder, left_out)]
    assert found == ["a.txt", "b.md", "e.epub", "x/c.HTML", "x/d.csv.gz"]
    assert str(left_out) == "2 files of other kinds (.pdf 1, .png 1)"
    assert left_out.advice == " To read .pdf files, save them as text first."


def test_nothing_left_out_says_nothing(tmp_path):
    left_out = LeftOut()
    assert list(files_in(tmp_path, left_out)) == []
    assert not left_out
    assert left_out.advice == ""


def test_many_kinds_are_not_all_listed():
    left_out = LeftOut()
    for number in range(9):
        left_out.add(named_path(".") / f"a.k{number}")
    assert str(left_out).endswith(", …)")


def test_an_empty_name_a_missing_file_and_a_pipe_are_sentences(tmp_path):
    with pytest.raises(DataError, match="an empty one"):
        named_path("")
    with pytest.raises(DataError, match="does not exist"):
        named_path(tmp_path / "none")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DataError, match="read only once"):
            named_path(tmp_path / "pipe")
