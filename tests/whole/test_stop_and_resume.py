"""A run that was stopped and went on is the run that was left alone, bit for bit, but for its times."""

import signal
import subprocess
import sys

import pytest
import torch

from pellucid.checkpoint import RunFolder
from pellucid.train import Resumed, Saved, resume, train
from tests.train.small_run import Heard, small_request, small_text, stop_after, timeless, train_small

DROPPING = {"model": {"dropout": 0.3}, "micro_batch_size": 3, "steps": 7, "evaluations": 3}
MARKS = {"Resumed", "Saved"}  # events that only tell where files are, and that a run was taken up again


pytestmark = pytest.mark.usefixtures("nothing_takes_long")


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    train_small(out, **DROPPING)
    return RunFolder.open(out)


def final_state(folder):
    checkpoint = folder.load_checkpoint(folder.latest_checkpoint())
    return {**checkpoint.model, **checkpoint.optimizer}, checkpoint.state, checkpoint.score


def metrics(folder):
    return [timeless(event) | {"out": None} for event in folder.metrics() if event["event"] not in MARKS]


def assert_equal(folder, expected):
    (tensors, state, score), (true_tensors, true_state, true_score) = final_state(folder), final_state(expected)
    assert tensors.keys() == true_tensors.keys()
    assert [name for name, tensor in tensors.items() if not torch.equal(tensor, true_tensors[name])] == []
    assert (state, score) == (true_state, true_score)
    assert metrics(folder) == metrics(expected)
    for name in ("config.json", "tokenizer.json", "tokens/train.tokens", "tokens/held_out.tokens"):
        assert (folder.path / name).read_bytes() == (expected.path / name).read_bytes(), name
    kept, truly_kept = (one.load_model().state_dict() for one in (folder, expected))
    assert all(torch.equal(kept[name], tensor) for name, tensor in truly_kept.items())
    assert [info.step for info in folder.checkpoints()] == [info.step for info in expected.checkpoints()]


@pytest.mark.parametrize("stops", [(1,), (2,), (4,), (6,), (1, 1, 3)], ids=str)
def test_stopped_after_some_steps_it_ends_the_same(tmp_path, left_alone, stops):
    first, *others = stops
    train_small(tmp_path / "run", watch=stop_after(first), **DROPPING)
    for steps in others:
        assert not resume(tmp_path / "run", Heard(), watch=stop_after(steps)).completed
    heard = Heard()
    assert resume(tmp_path / "run", heard).completed
    assert heard.of(Resumed)[0].step == sum(stops)
    assert_equal(RunFolder.open(tmp_path / "run"), left_alone)


@pytest.mark.parametrize("kind", ["StepDone", "Evaluated", "Sampled", "Saved"])
def test_killed_anywhere_it_ends_the_same(tmp_path, left_alone, kind):
    """Between any two files: the folder is taken up as a kill would have left it."""

    class Killed(Heard):
        def __call__(self, event):
            self.append(event)
            if type(event).__name__ == kind and event.step == 5:
                raise SystemExit

    with pytest.raises(SystemExit):
        train(small_request(tmp_path / "run", **DROPPING), Killed())
    resume(tmp_path / "run", Heard())
    assert_equal(RunFolder.open(tmp_path / "run"), left_alone)


def test_a_checkpoint_is_told_of_wherever_one_was_saved(left_alone):
    told = [event["step"] for event in left_alone.metrics() if event["event"] == Saved.__name__]
    assert told == [3, 5, 7]


SMALL = """--tokenizer char --precision float32 --compile off --threads 1 --batch-size 4 --evaluations 4
    --model.d-model 32 --model.num-heads 2 --model.num-layers 1 --model.context-length 16"""


def pellucid(*words, **settings):
    words = [sys.executable, "-m", "pellucid", "train", *map(str, words)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_signal_from_outside_ends_it_so_that_it_goes_on_to_the_same_end(tmp_path, number, code):
    (tmp_path / "words.txt").write_text(small_text(), encoding="utf-8")
    flags = [tmp_path / "words.txt", *SMALL.split(), "--steps", 400]
    pellucid(*flags, "--out", tmp_path / "alone").communicate()
    process = pellucid(*flags, "--out", tmp_path / "run")
    for line in process.stdout:
        if line.startswith("Step 200/"):  # said when step 100 had been saved
            process.send_signal(number)
            break
    rest, errors = process.communicate()
    assert (process.returncode, errors) == (code, "")
    if number != signal.SIGKILL:
        assert f"Go on: pellucid train --resume {tmp_path / 'run'}" in rest
    said, errors = pellucid("--resume", tmp_path / "run").communicate()
    assert errors == ""
    assert "Going on with" in said
    assert_equal(RunFolder.open(tmp_path / "run"), RunFolder.open(tmp_path / "alone"))
