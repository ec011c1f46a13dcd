"""Runs whose steps torch.compile makes: dropout, a cut that leaves a remainder, stopped, and without a compiler."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from pellucid.checkpoint import RunFolder
from pellucid.train import Planned, Resumed, StepDone, VariantTried, resume
from pellucid.train.device import Capabilities
from tests.train.small_run import Heard, cut_short, small_sources, small_text, stop_after, train_small

pytestmark = pytest.mark.slow

SETTINGS = {"compile": "on", "steps": 20, "evaluations": 2}


@pytest.fixture(autouse=True)
def _nothing_takes_long(monkeypatch, no_shape_checks):
    cut_short(monkeypatch)


needs_a_compiler = pytest.mark.skipif(Capabilities.of_this_machine().compiler is None, reason="no C++ compiler here")


def losses(heard):
    return [event.bits_per_character for event in heard.of(StepDone)]


@needs_a_compiler
def test_compiled_and_eager_losses_agree_for_20_steps(tmp_path):
    _, compiled = train_small(tmp_path / "compiled", **SETTINGS)
    _, eager = train_small(tmp_path / "eager", **SETTINGS | {"compile": "off"})
    assert compiled.of(Planned)[0].variant == "float32, written-out attention, compiled"
    assert losses(compiled) == pytest.approx(losses(eager), rel=1e-3)
    saved = [RunFolder.open(tmp_path / how) for how in ("compiled", "eager")]
    names = [run.load_checkpoint(run.latest_checkpoint()).model.keys() for run in saved]
    assert names[0] == names[1]  # nothing of a compiler's wrapping is in them


@needs_a_compiler
@pytest.mark.parametrize(
    "changes", [{}, {"model": {"dropout": 0.3}}, {"micro_batch_size": 3}, {"precision": "bfloat16"}]
)
def test_a_compiled_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path, changes):
    _, alone = train_small(tmp_path / "alone", **SETTINGS, **changes)
    assert alone.of(Planned)[0].variant.endswith("compiled")
    _, first = train_small(tmp_path / "run", watch=stop_after(7), **SETTINGS, **changes)
    rest = Heard()
    resume(tmp_path / "run", rest)
    assert rest.of(Resumed)[0].note == ""
    assert losses(first) + losses(rest) == losses(alone)
    run, expected = RunFolder.open(tmp_path / "run"), RunFolder.open(tmp_path / "alone")
    weights, expected_weights = (one.load_checkpoint(one.latest_checkpoint()).model for one in (run, expected))
    assert all(torch.equal(weights[name], tensor) for name, tensor in expected_weights.items())


WITHOUT = """
import os, sys
os.environ["PATH"] = os.path.dirname(sys.executable)
os.environ.pop("CXX", None)
from pellucid.cli.main import run
sys.exit(run(["train", *sys.argv[1:]]))
"""
SMALL = """--tokenizer char --batch-size 4 --evaluations 2 --steps 4 --threads 1 --precision bfloat16
    --model.d-model 32 --model.num-heads 2 --model.num-layers 1 --model.context-length 16"""


@pytest.mark.parametrize(("compile", "lines"), [("on", 1), ("auto", 0)])
def test_without_a_compiler_it_runs_eagerly_and_says_so_in_one_line(tmp_path, compile, lines):
    (tmp_path / "words.txt").write_text(small_text(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "words.txt", *SMALL.split(), "--compile", compile],
        cwd=tmp_path,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = [line for line in done.stdout.splitlines() if "no C++ compiler" in line]
    assert len(told) == lines  # a run so short would not have been compiled anyway
    assert "bfloat16, written-out attention, eager, 1 thread" in done.stdout


@needs_a_compiler
@pytest.mark.skipif(os.name == "nt", reason="terminals signal in another way there")
def test_ctrl_c_while_it_compiles_ends_it_without_a_word_of_torchs_and_leaves_nothing(tmp_path):
    (tmp_path / "words.txt").write_text(small_text(), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "pellucid", "train", "words.txt", *SMALL.split(), "--compile", "on"],
        cwd=tmp_path,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,  # the signal goes to the compiler too, as a terminal's does
    )
    for line in process.stdout:
        if line.startswith("Compiling"):
            time.sleep(1)  # torch has begun; a small step is compiled in three seconds and more
            os.killpg(process.pid, signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.read() == "\nInterrupted.\n"
    assert not (tmp_path / "runs").exists()


@needs_a_compiler
def test_a_run_of_minutes_ends_within_them(tmp_path):
    long = small_sources(390_000)  # not used up by then
    finished, heard = train_small(tmp_path / "run", sources=long, steps=None, minutes=0.3, compile="auto")
    assert finished.completed
    assert finished.seconds < 18 + 3  # a busy machine may slow the last steps
    assert finished.seconds > 9
    assert len(heard.of(VariantTried)) == 1  # too short to pay for a compiler
