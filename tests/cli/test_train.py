import os
import re
import subprocess
import sys

import pytest

from pellucid.cli import train, train_run
from tests.train.small_run import small_text

SAYS = """
import builtins, sys
from pellucid.cli.main import run
loaded, loud = [], builtins.print
def aloud(*words, **how):
    loaded.append(sys.modules.keys() & {"torch", "tyro", "rich", "numpy"})
    loud(*words, **how)
builtins.print = aloud
run(["train", "nowhere.txt"])
sys.exit(bool(loaded[0]))
"""


def test_it_speaks_before_anything_slow_is_imported():
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("pellucid train: reading the text")


def test_help_is_all_that_help_says(capsys):
    with pytest.raises(SystemExit):
        train.main(["--help"])
    assert capsys.readouterr().out.startswith("usage: pellucid train")


def test_flags_and_the_moment_of_enter_are_handed_on(monkeypatch):
    handed = []
    monkeypatch.setattr(train_run, "carry_out", lambda flags, begun: handed.append((flags.sources, begun)) or 7)
    assert train.main(["a.txt"]) == 7
    assert handed == [(("a.txt",), train.BEGUN)]


SMALL = """--tokenizer char --precision float32 --compile off --threads 1 --steps 40 --batch-size 4 --evaluations 4
    --model.d-model 32 --model.num-heads 2 --model.num-layers 1 --model.context-length 16"""


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals are another matter there")
def test_on_a_terminal_a_dozen_lines_stay_and_one_was_alive(tmp_path):
    pty = pytest.importorskip("pty")
    (tmp_path / "words.txt").write_text(small_text(), encoding="utf-8")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", "LINES": "50"}
    process = subprocess.Popen(
        [sys.executable, "-m", "pellucid", "train", "words.txt", *SMALL.split()],
        cwd=tmp_path,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    text = said.decode("utf-8")
    assert process.wait() == 0, text
    assert re.search(r"\x1b\[\?25l.*Step \d+/40.*\x1b\[\?25h", text, re.DOTALL)
    assert "\x1b[2K" in text
    assert "Next:  pellucid generate runs/words-01" in text
    assert text.count("\n") - text.count("\x1b[1A") <= 14
