"""`pellucid prepare` in a process of its own, as people run it."""

import os
import random
import signal
import subprocess
import sys

import pytest

from pellucid.data import Batches, PreparedFolder
from pellucid.text import train_byte_pairs
from tests.train.small_run import small_text

COMMAND = [sys.executable, "-m", "pellucid", "prepare"]


def long_text(characters: int) -> str:
    """Lines that hardly repeat."""
    dice, words = random.Random(0), small_text().split()
    lines = []
    while characters > 0:
        lines.append(" ".join(dice.choices(words, k=9)) + f" {dice.randrange(10**6)}\n")
        characters -= len(lines[-1])
    return "".join(lines)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def text(tmp_path):
    train_byte_pairs([long_text(100_000)], 600).save(tmp_path / "tokenizer.json")
    return tmp_path / "text.txt"


def test_the_first_line_comes_before_anything_slow(tmp_path):
    process = subprocess.Popen([*COMMAND, "no.txt", "--out", "d"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "pellucid prepare: reading the text.\n"
    process.communicate()
    assert process.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_killed_at_random_moments_the_same_command_ends_with_the_same_bytes(tmp_path, text):
    text.write_text(long_text(6_000_000), encoding="utf-8")
    flags = [str(text), "--tokenizer", str(tmp_path / "tokenizer.json"), "--processes", "2"]
    subprocess.run([*COMMAND, *flags, "--out", str(tmp_path / "whole")], check=True, stdout=subprocess.DEVNULL)
    dice, kills, out = random.Random(1), 0, tmp_path / "killed"
    for patience in (1.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 6.0, 600.0):
        process = subprocess.Popen(
            [*COMMAND, *flags, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            process.communicate(timeout=patience + dice.random())
        except subprocess.TimeoutExpired:
            process.send_signal(number := dice.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
            said = process.communicate()
            kills += 1
            assert "Traceback" not in said[1], said[1]
            if number != signal.SIGKILL:
                assert process.returncode in (130, 143)
        else:
            assert process.returncode == 0
            break
    assert kills >= 2
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="memory is read from Linux's /proc")
def test_memory_does_not_grow_with_the_text(tmp_path, text):
    peaks = []
    for characters in (4_000_000, 24_000_000):
        text.write_text(long_text(characters), encoding="utf-8")
        flags = [str(text), "--tokenizer", str(tmp_path / "tokenizer.json"), "--processes", "2"]
        process = subprocess.Popen(
            [*COMMAND, *flags, "--out", str(tmp_path / f"{characters}")], stdout=subprocess.DEVNULL
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory_of_family(process.pid))
        assert process.returncode == 0
        peaks.append(peak)
    assert peaks[1] < 1_000_000_000
    assert peaks[1] - peaks[0] < 60_000_000  # of 20 MB more text, and its tokens


def memory_of_family(pid: int) -> int:
    """Bytes of a process and its children, shared ones counted once."""
    family = [pid]
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            family += [int(child) for child in file.read().split()]
    except OSError:
        return 0
    total = 0
    for one in family:
        try:
            with open(f"/proc/{one}/smaps_rollup", encoding="ascii") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return 1024 * total


@pytest.mark.slow
def test_a_large_token_file_is_used_within_seconds_and_bounded_memory(tmp_path, text):
    """Field note D11, on what `prepare` writes: the batches of a file that is made large."""
    text.write_text(long_text(300_000), encoding="utf-8")
    flags = [str(text), "--tokenizer", str(tmp_path / "tokenizer.json")]
    subprocess.run([*COMMAND, *flags, "--out", str(tmp_path / "d")], check=True, stdout=subprocess.DEVNULL)
    folder = PreparedFolder.open(tmp_path / "d")
    batches = Batches(folder.data(folder.tokenizer()).train, context_length=64, batch_size=8, seed=0)
    assert batches.at(0)[0].shape == (8, 64)
