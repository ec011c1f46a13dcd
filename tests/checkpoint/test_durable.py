import os
from pathlib import Path

import pytest

from pellucid.checkpoint.durable import TEMPORARY, in_a_sentence, publish_folder, replacing, sha256_of, sweep
from pellucid.errors import RunFolderError


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")

    def interrupted():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["note.txt"]


def test_file_and_folder_are_forced_to_the_disk_before_and_after_the_rename(tmp_path, monkeypatch):
    order = []
    fsync, rename = os.fsync, Path.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (order.append("dir" if os.path.isdir(f"/dev/fd/{fd}") else "file"), fsync(fd))
    )
    monkeypatch.setattr(Path, "replace", lambda self, to: (order.append("rename"), rename(self, to)))
    with replacing(tmp_path / "note.txt") as temporary:
        temporary.write_text("whole")
    assert order == ["file", "rename", "dir"]


def test_publishing_forces_every_file_and_both_folders(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(
        "pellucid.checkpoint.durable.force_to_disk", lambda path: order.append((path.name, path.exists()))
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / "a").write_text("a")
    publish_folder(temporary, tmp_path / "whole")
    assert order == [("a", True), ("temporary", True), (tmp_path.name, True)]


def test_publishing_replaces_a_folder_of_the_same_name(tmp_path):
    for text in ("old", "new"):
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        (temporary / "a").write_text(text)
        publish_folder(temporary, tmp_path / "whole")
    assert (tmp_path / "whole" / "a").read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["whole"]


def test_a_folder_moved_aside_by_a_killed_process_gets_its_name_back(tmp_path):
    aside = tmp_path / f"{TEMPORARY}was-step-000880"
    aside.mkdir()
    (aside / "a").write_text("whole")
    half = tmp_path / f"{TEMPORARY}step-000880-1"
    half.mkdir()
    sweep(tmp_path)
    assert (tmp_path / "step-000880" / "a").read_text() == "whole"
    assert [file.name for file in tmp_path.iterdir()] == ["step-000880"]


def test_an_old_folder_is_removed_when_the_new_one_is_in_its_place(tmp_path):
    (tmp_path / f"{TEMPORARY}was-step-000880").mkdir()
    (tmp_path / "step-000880").mkdir()
    sweep(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["step-000880"]


def test_a_full_disk_is_a_sentence_with_a_remedy(tmp_path):
    with pytest.raises(RunFolderError, match=r"no space left.*: free some space"), in_a_sentence(tmp_path):
        raise OSError(28, "No space left on device", "file")


def test_sha256_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256_of(tmp_path / "a").startswith("ba7816bf8f01cfea")  # FIPS 180-2, appendix B.1
