"""`torchrun … -m pellucid train`: a worker is killed, a user errs, the numbers go bad, two runs begin at once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pellucid.checkpoint import RunFolder
from tests.house.source_tree import ROOT
from tests.train.small_run import small_text
from tests.whole.test_stop_and_resume import assert_equal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="which processes torchrun has is read from /proc"),
]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
TRAINING = ["--steps", "40", "--evaluations", "10", "--batch-size", "4", "--compile", "off", "--precision", "float32"]
MODEL = ["--model.d-model=32", "--model.num-layers=1", "--model.num-heads=2", "--model.context-length=16"]
SMALL = [*TRAINING, *MODEL, "--model.dropout=0.1", "--tokenizer=char"]
NEVER_FINITE = ("--optimizer.vector-learning-rate", "1e30", "--optimizer.max-gradient-norm", "0")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("torchrun")


@pytest.fixture(scope="module")
def begun(place):
    """Begins `torchrun` with some of its own words, and with those for `pellucid train words.txt`."""
    (place / "words.txt").write_text(small_text(20_000), encoding="utf-8")
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    processes = []

    def begin(*words, torchrun=()):
        command = [*TORCHRUN, *torchrun, "-m", "pellucid", "train", "words.txt", *SMALL, *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        processes.append(subprocess.Popen(command, cwd=place, env=environment, text=True, **pipes))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def workers(process):
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    environments = {pid: Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in children}
    return {rank: int(pid) for rank in (0, 1) for pid, of in environments.items() if f"RANK={rank}".encode() in of}


def kill_worker(process, rank, folder):
    """Kill a worker behind the run's third checkpoint."""
    until = time.monotonic() + 120
    while not list(folder.glob("checkpoints/step-00001[2-9]")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.005)
    os.kill(workers(process)[rank], signal.SIGKILL)


@pytest.fixture(scope="module")
def undisturbed(begun, place):
    """The folder of a run that two processes have made from its first step to its last."""

    def made(*words):
        folder = place / "-".join(("alone", *words))
        if not folder.exists():
            process = begun("--out", folder.name, *words)
            assert process.wait(120) == 0, process.communicate()[0]
        return RunFolder.open(folder)

    return made


@pytest.mark.parametrize(("rank", "words"), [(0, ()), (1, ()), (0, ("--shard",))])
def test_a_worker_is_killed_and_the_run_ends_as_the_undisturbed_one(begun, place, undisturbed, rank, words):
    expected, name = undisturbed(*words), "-".join((f"killed-{rank}", *words))
    process = begun("--out", name, *words, torchrun=("--max-restarts", "1"))  # one: it goes on at the first try
    kill_worker(process, rank, place / name)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    assert f"Going on with {name} after step" in said
    assert_equal(RunFolder.open(place / name), expected)


def test_without_restarts_the_same_command_goes_on(begun, place, undisturbed):
    process = begun("--out", "again")
    kill_worker(process, 1, place / "again")
    assert process.wait(120) != 0
    assert begun("--out", "again").wait(120) == 0
    assert_equal(RunFolder.open(place / "again"), undisturbed())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--out", "words.txt"), "Expected"),  # found by the first process, when all have met
        (("--stepz", "3"), "perhaps you meant --steps"),  # found by each, on its own
        (
            ("--optimizer.vector-learning-rate", "1e30", "--optimizer.max-gradient-norm", "0"),
            "finite",
        ),  # by all at once
        (("--model.feed-forward", "nowhere.py:Mine"), "nowhere.py"),
    ],
)
def test_what_cannot_work_is_one_sentence(begun, words, sentence):
    process = begun(*words)
    lines = process.communicate(timeout=120)[0].splitlines()
    assert process.returncode != 0
    said = [line for line in lines if line.startswith("Expected")]
    assert len(said) == 1, said
    assert sentence in said[0]
    assert not any("went wrong" in line for line in lines)


def test_two_runs_at_once_do_not_meet(begun, place):
    for process in [begun("--out", "one"), begun("--out", "two")]:
        assert process.wait(120) == 0
    assert_equal(RunFolder.open(place / "one"), RunFolder.open(place / "two"))
