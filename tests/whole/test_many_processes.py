"""Two processes train what one trains: the same losses and norms, and files of the same names, shapes and layout."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from pellucid.checkpoint import RunFolder
from pellucid.parallel import ALONE
from pellucid.train import resume
from tests.house.source_tree import ROOT
from tests.train.small_run import Heard, cut_short
from tests.whole.many_processes import CASES, STOPPED, run_case

FLOAT32, BFLOAT16 = 1e-5, 5e-3  # relative: 2e-7 and 5e-5 of a loss, 3e-6 and 2e-3 of a norm were seen


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The folder with what two processes left."""
    folder = tmp_path_factory.mktemp("two")
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *command, str(ROOT / "tests/whole/many_processes.py"), str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The run folder of a case that one process has computed."""
    folder = tmp_path_factory.mktemp("one")

    def made(name):
        if not (folder / name).exists():
            run_case(folder / name, {**CASES, **STOPPED}[name], ALONE, stopped=name in STOPPED)
        return RunFolder.open(folder / name)

    return made


def told(folder, event, field):
    return [metric[field] for metric in folder.metrics() if metric["event"] == event]


@pytest.mark.parametrize("name", CASES)
def test_two_processes_see_the_losses_and_norms_of_one(two, one, name):
    bound = BFLOAT16 if "bfloat16" in name else FLOAT32
    alone, together = one(name), RunFolder.open(two / name)
    for event, field in (("StepDone", "bits_per_character"), ("StepDone", "gradient_norm"), ("Evaluated", "held_out")):
        assert told(together, event, field) == pytest.approx(told(alone, event, field), rel=bound)
    norms = told(together, "StepDone", "gradient_norm")
    assert json.loads((two / f"{name}.json").read_text()) == norms  # every rank knows the norm of the whole


@pytest.mark.parametrize("name", [name for name in CASES if "bfloat16" not in name])
def test_two_processes_leave_the_files_of_one(two, one, name):
    alone, together = one(name), RunFolder.open(two / name)
    for file in ("model.safetensors", "optimizer.safetensors"):
        here, there = (load_file(folder.latest_checkpoint() / file) for folder in (alone, together))
        assert here.keys() == there.keys()
        for key, tensor in here.items():
            assert (there[key].shape, there[key].dtype) == (tensor.shape, tensor.dtype)
            torch.testing.assert_close(there[key], tensor, rtol=1e-3, atol=1e-5)  # AdamW divides by what is near 0
    assert {path.name for path in together.path.iterdir()} == {path.name for path in alone.path.iterdir()}


@pytest.mark.parametrize("name", STOPPED)
def test_what_two_began_one_goes_on_with(two, one, monkeypatch, name):
    cut_short(monkeypatch)
    folder = RunFolder.open(two / name)
    assert told(folder, "Finished", "completed") == [False]
    resume(folder.path, Heard())
    losses = told(one("replicas"), "StepDone", "bits_per_character")
    assert told(folder, "StepDone", "bits_per_character") == pytest.approx(losses, rel=FLOAT32)


def test_the_plan_says_how_many_share_a_step(two):
    plan = RunFolder.open(two / "replicas, accumulating").facts["plan"]
    assert (plan["ranks"], plan["micro_batch_size"], plan["batch_size"]) == (2, 1, 4)
    assert RunFolder.open(two / "replicas").facts["plan"]["micro_batch_size"] == 2


def test_a_tied_embedding_is_one_tensor_on_the_disk(two):
    for name in ("replicas of a tied model", "shards of a tied model"):
        weights = load_file(RunFolder.open(two / name).latest_checkpoint() / "model.safetensors")
        assert ("token_embedding.weight" in weights) != ("lm_head.weight" in weights)
