import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from pellucid.cli.main import run
from tests.cli.chat_models import saved


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("runs") / "größe")


KEYS_ARE_READ = 0.5
"""Seconds after a prompt: a control key that comes before readline waits for keys is heard only with the next key."""


class OnATerminal:
    """`pellucid chat` with a person at it."""

    def __init__(self, *words):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
            os.execve(sys.executable, [sys.executable, "-m", "pellucid", "chat", *words], environment)
        self.seen = ""

    def until(self, words, seconds=60.0):
        """Everything up to the next time these words appear."""
        start, deadline = len(self.seen), time.monotonic() + seconds
        while words not in self.seen[start:]:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    read = os.read(self.file, 65536)
                except OSError:  # the other side has gone
                    read = b""
                assert read, self.seen
                self.seen += read.decode("utf-8", "replace")
        return self.seen[start:]

    def type(self, text):
        os.write(self.file, text.encode())

    def code(self, seconds=60.0):
        """The exit code, once it has left."""
        deadline = time.monotonic() + seconds
        while True:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                pytest.fail(f"it did not leave: {self.seen}")
            try:
                if select.select([self.file], [], [], 0.1)[0] and not os.read(self.file, 65536):
                    break
            except OSError:  # the other side has gone
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_person_asks_ends_an_answer_and_leaves(model):
    chat = OnATerminal(model, "--max-tokens", "2", "--seed", "5", "--temperature", "0")
    assert "größe · 256 tokens of context · seed 5 · /help · Ctrl-D leaves" in chat.until("> ")
    chat.type("hello\n")
    chat.until("\r\n\r\n> ")
    time.sleep(KEYS_ARE_READ)
    chat.type("\x04")
    assert chat.code() == 0


def test_ctrl_c_twice_leaves(model):
    chat = OnATerminal(model)
    for _ in range(2):
        chat.until("> ")
        time.sleep(KEYS_ARE_READ)
        chat.type("hel\x03")
    assert "Ctrl-C once more leaves." in chat.seen
    assert chat.code() == 130


def test_sigterm_ends_it(model):
    chat = OnATerminal(model)
    chat.until("> ")
    os.kill(chat.pid, signal.SIGTERM)
    assert chat.code() == 143


def test_without_a_terminal_each_line_is_a_message(model):
    ran = subprocess.run(
        [sys.executable, "-m", "pellucid", "chat", model, "--max-tokens", "3", "--seed", "1"],
        input=b"hello\n\n  \ngoodbye\r\n",
        capture_output=True,
        env={**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C"},
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.count(b"\n") >= 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--temperature", "-1"], "temperature to be a number, 0 or more, but got -1.0"),
        (["--max-tokens", "-1"], "max_tokens to be a whole number of 0 or more, but got -1"),
        (["--sede", "1"], "perhaps you meant --seed"),
    ],
)
def test_a_wrong_flag_is_refused_in_a_sentence(model, capsys, words, sentence):
    assert run(["chat", model, *words]) == 2
    assert sentence in capsys.readouterr().err


def test_no_model_is_told(capsys, tmp_path):
    assert run(["chat", str(tmp_path / "nothing")]) == 2
    assert "where there is nothing" in capsys.readouterr().err
