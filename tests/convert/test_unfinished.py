import os
import signal
import subprocess
import sys

import pytest

from pellucid.convert.unfinished import UNFINISHED, publish, unfinished
from pellucid.errors import ModelFileError, RunFolderError

KILLED = """
import sys
import time
from pathlib import Path
from pellucid.convert.unfinished import unfinished
with unfinished(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_kill_leaves_nothing_under_the_name_and_the_next_export_cleans_up(tmp_path):
    out = tmp_path / "hf"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(out)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(UNFINISHED)
    with unfinished(out):  # of one that lives, nothing is taken away
        assert left.exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    with unfinished(out):
        assert not left.exists()


def test_something_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    for name, kind in {"folder": "a folder", "file": "a file", "link": "a file"}.items():
        with pytest.raises(ModelFileError, match=f"{kind} that is there"), unfinished(tmp_path / name):
            pass
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "link"]


def test_what_came_in_the_meantime_is_left_alone_too(tmp_path):
    with unfinished(tmp_path / "x") as folder:
        (folder / "new").write_text("new")
        (tmp_path / "x").write_text("old")
        with pytest.raises(ModelFileError, match="that is there"):
            publish(folder / "new", tmp_path / "x")
    assert (tmp_path / "x").read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_what_is_published_has_its_name_and_nothing_else_is_left(tmp_path):
    with unfinished(tmp_path / "deep" / "x") as folder:
        (folder / "new").write_text("new")
        publish(folder / "new", tmp_path / "deep" / "x")
    assert (tmp_path / "deep" / "x").read_text() == "new"
    assert os.listdir(tmp_path / "deep") == ["x"]


def test_what_the_disk_refuses_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path, said in {"file/x": "to read and write", "n" * 250: "choose a shorter name"}.items():
        with pytest.raises(RunFolderError, match=said), unfinished(tmp_path / path):
            pass
    assert os.listdir(tmp_path) == ["file"]
