"""Findings about machines that are not here, and that this one computes right."""

import json
from collections import namedtuple

import pytest
import torch

from pellucid import doctor
from pellucid.doctor import Finding, examine, judge
from pellucid.train.device import Capabilities

EXACT = torch.tensor([[1.0, -2.0]])


@pytest.fixture
def machine(monkeypatch):
    """A machine of two idle cores with much memory; a test changes what it is about."""
    monkeypatch.setattr(doctor, "_usable_cores", lambda: 2)
    monkeypatch.setattr(doctor, "_load_average", lambda: 0.0)
    monkeypatch.setattr(doctor, "memory_bytes", lambda: (16e9, 12e9))
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    return monkeypatch


def test_the_versions_that_are_here_are_right():
    found = doctor.versions()
    assert found.state == "right"
    assert found.figures["torch"] == torch.__version__


def test_an_old_torch_is_wrong(monkeypatch):
    monkeypatch.setattr("torch.__version__", "2.9.1+cpu")
    found = doctor.versions()
    assert found.state == "wrong"
    assert "2.13 or newer" in found.so_what


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(doctor, "LIBRARIES", ("torch", "no-such-library"))
    assert "no-such-library missing" in doctor.versions().said


def test_idle_cores_are_right(machine):
    assert doctor.cores().state == "right"


def test_more_threads_than_cores_are_wrong(machine):
    machine.setattr("torch.get_num_threads", lambda: 8)
    found = doctor.cores()
    assert found.state == "wrong"
    assert "--threads 2" in found.so_what


def test_a_busy_machine_is_told(machine):
    machine.setattr(doctor, "_load_average", lambda: 4.0)
    found = doctor.cores()
    assert found.state == "note"
    assert "200% busy" in found.so_what


@pytest.mark.parametrize(
    ("sizes", "state", "said"),
    [((16e9, 12e9), "right", "12.0 of 16.0 GB"), ((16e9, 1e9), "note", "1.0 of"), ((None, None), "right", "not told")],
)
def test_memory(machine, sizes, state, said):
    machine.setattr(doctor, "memory_bytes", lambda: sizes)
    found = doctor.memory()
    assert found.state == state
    assert said in found.said


def test_memory_is_told_here():
    total, free = doctor.memory_bytes()
    assert total is None or 0 < free <= total


@pytest.mark.parametrize(("free", "state"), [(50e9, "right"), (0.5e9, "note")])
def test_disk(monkeypatch, tmp_path, free, state):
    usage = namedtuple("Usage", "free")(free)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    assert doctor.disk(tmp_path).state == state


def test_a_folder_that_cannot_be_written_is_wrong(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda folder, mode: False)
    found = doctor.disk(tmp_path)
    assert found.state == "wrong"
    assert "--out" in found.so_what


def test_devices_are_told_with_what_they_train_in(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "A Device")
    found = doctor.devices(Capabilities(cuda=True))
    assert "cuda (A Device)" in found.said
    assert "trains on cuda (cpu: bfloat16 or float32; cuda: float32; float16 nowhere)" in found.so_what


def test_without_a_compiler_steps_run_eagerly():
    found = doctor.compiler(Capabilities(compiler=None))
    assert found.state == "note"
    assert "eagerly" in found.so_what
    assert doctor.compiler(Capabilities(compiler="/usr/bin/g++")).state == "right"


def test_a_processor_without_wide_instructions_is_told():
    assert doctor.instructions("DEFAULT").state == "note"


def test_ceilings_are_told_in_both_number_types(monkeypatch):
    monkeypatch.setattr("pellucid.train.ceiling.seconds", lambda product, **rest: product.x.itemsize * 1e-3)
    assert "gains 2.0 times" in doctor.ceilings().so_what


@pytest.mark.parametrize(
    ("error", "precision", "state"),
    [
        (0.0, "float32", "right"),
        (1e-4, "float32", "right"),
        (1e-2, "float32", "wrong"),
        (1e-2, "bfloat16", "right"),
        (1.0, "bfloat16", "wrong"),
        (float("nan"), "bfloat16", "wrong"),
    ],
)
def test_logits_are_judged_by_the_bound_of_their_number_type(error, precision, state):
    assert judge("mps", precision, lambda: EXACT + error, EXACT).state == state


def test_what_fails_is_told_in_one_line():
    def fail():
        raise RuntimeError("no such kernel\nand a long story")

    assert judge("cuda float32", "float32", fail, EXACT).said == "fails: no such kernel"
    assert judge("cuda float32", "float32", fail, EXACT).state == "wrong"
    assert judge("cpu float32 compiled", "float32", fail, EXACT).state == "note"


def test_this_machine_computes_right(tmp_path):
    found = list(examine(tmp_path, quick=True))
    ways = [finding.topic for finding in found if finding.topic.startswith("cpu")]
    assert ways == ["cpu float32", "cpu bfloat16"]
    assert not [finding for finding in found if finding.state == "wrong" and finding.topic.startswith("cpu")]
    json.dumps([finding.as_json() for finding in found])


def test_a_device_that_rounds_is_found(monkeypatch, tmp_path):
    by = doctor._logits_by
    monkeypatch.setattr(doctor, "_logits_by", lambda *way: by(*way) + (0.1 if way[1] == "float32" else 0))
    wrong = [finding.topic for finding in examine(tmp_path, quick=True) if finding.state == "wrong"]
    assert "cpu float32" in wrong


@pytest.mark.slow
@pytest.mark.usefixtures("no_shape_checks")
def test_this_machine_computes_right_compiled(tmp_path):
    found = {finding.topic: finding for finding in examine(tmp_path)}
    if found["compiler"].state == "right":
        assert found["cpu bfloat16 compiled"].state == "right"
        assert found["cpu float32 compiled"].state == "right"


def test_a_finding_says_what_and_so_what():
    finding = Finding(topic="x", said="there", so_what="good")
    assert finding.as_json() == {"topic": "x", "said": "there", "so_what": "good", "state": "right", "figures": {}}
