import errno
import os

import pytest

from pellucid.disk import force_to_disk


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_file_and_a_folder_are_forced_to_the_disk(tmp_path, monkeypatch, is_folder):
    path, forced = tmp_path / "it", []
    path.mkdir() if is_folder else path.write_bytes(b"x")
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (forced.append(os.fstat(fd).st_ino), fsync(fd)))
    force_to_disk(path)
    assert forced == [path.stat().st_ino]


@pytest.mark.parametrize(("number", "goes_on"), [(errno.EINVAL, True), (errno.EIO, False)])
def test_only_a_file_system_that_cannot_is_forgiven(tmp_path, monkeypatch, number, goes_on):
    def refuse(fd):
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", refuse)
    if goes_on:
        force_to_disk(tmp_path)
    else:
        with pytest.raises(OSError, match="no"):
            force_to_disk(tmp_path)
