import json
import math
import pickle

import pytest
import torch

from pellucid.checkpoint import Checkpoint, checkpoints
from pellucid.errors import ModelFileError


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def at(step, score=None):
    generator = torch.Generator().manual_seed(step)
    tensor = torch.randn(4, generator=generator)
    return Checkpoint(step, {"w": tensor}, {"w": {"mean": tensor * 2, "lr": 0.1}}, {"stream": tensor}, score, 12)


def steps(folder):
    return [info.step for info in checkpoints.listed(folder)]


def test_a_checkpoint_comes_back_exactly(tmp_path):
    saved = at(880, 1.91)
    back = checkpoints.load(checkpoints.save(tmp_path, saved))
    assert (back.step, back.score, back.metrics_bytes) == (880, 1.91, 12)
    assert torch.equal(back.model["w"], saved.model["w"])
    assert torch.equal(back.optimizer["w"]["mean"], saved.optimizer["w"]["mean"])
    assert back.optimizer["w"]["lr"] == 0.1
    assert torch.equal(back.state["stream"], saved.state["stream"])


def test_names_are_padded_and_order_is_that_of_numbers(tmp_path):
    for step in (1_000_000, 80, 999_999):
        checkpoints.save(tmp_path, at(step))
    assert (tmp_path / "step-000080").is_dir()
    assert steps(tmp_path) == [80, 999_999, 1_000_000]


def test_the_latest_and_the_best_are_kept(tmp_path):
    for step, score in ((5, math.nan), (10, 3.0), (20, 2.0), (30, None), (40, math.nan), (50, 2.5), (60, 2.0)):
        checkpoints.save(tmp_path, at(step, score))
        checkpoints.prune(tmp_path)
    assert steps(tmp_path) == [20, 60]
    assert checkpoints.best_of(checkpoints.listed(tmp_path)).step == 20


def test_more_can_be_kept(tmp_path):
    for step in range(1, 6):
        checkpoints.save(tmp_path, at(step, float(step)))
        checkpoints.prune(tmp_path, keep_more=2)
    assert steps(tmp_path) == [1, 3, 4, 5]


def test_a_step_saved_again_replaces_itself(tmp_path):
    checkpoints.save(tmp_path, at(1, 2.0))
    checkpoints.save(tmp_path, at(1, 1.0))
    assert [info.score for info in checkpoints.listed(tmp_path)] == [1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_changed_byte_is_found(tmp_path, name):
    path = checkpoints.save(tmp_path, at(1))
    content = bytearray((path / name).read_bytes())
    content[-1] ^= 1
    (path / name).write_bytes(content)
    with pytest.raises(ModelFileError, match="step-000001"):
        checkpoints.load(path)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "half"])
def test_a_partial_checkpoint_is_not_taken_for_whole(tmp_path, name, damage):
    checkpoints.save(tmp_path, at(1))
    file = checkpoints.save(tmp_path, at(2)) / name
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: 0 if damage == "empty" else file.stat().st_size // 2])
    assert steps(tmp_path) == [1]


def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch):
    checkpoints.save(tmp_path, at(1))
    monkeypatch.setattr(checkpoints, "publish_folder", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        checkpoints.save(tmp_path, at(2))
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


def test_no_pickle_is_run_by_listing_or_loading(tmp_path):
    bomb = pickle.dumps(Bomb(str(tmp_path / "marker")))
    path = checkpoints.save(tmp_path, at(1))
    for name in ("model.safetensors", "optimizer.safetensors", "state.json", "extra.pt"):
        whole = (path / name).read_bytes() if (path / name).exists() else b""
        (path / name).write_bytes(bomb)
        checkpoints.listed(tmp_path)
        if name != "extra.pt":
            with pytest.raises(ModelFileError):
                checkpoints.load(path)
            (path / name).write_bytes(whole)
    assert not (tmp_path / "marker").exists()


def test_a_pickle_with_a_matching_hash_is_not_run_either(tmp_path):
    path = checkpoints.save(tmp_path, at(1))
    (path / "model.safetensors").write_bytes(pickle.dumps(Bomb(str(tmp_path / "marker"))))
    described = json.loads((path / "state.json").read_text())
    described["files"]["model.safetensors"] = checkpoints._describe(path / "model.safetensors")
    (path / "state.json").write_text(json.dumps(described))
    with pytest.raises(ModelFileError, match="whole safetensors file"):
        checkpoints.load(path)
    assert not (tmp_path / "marker").exists()
