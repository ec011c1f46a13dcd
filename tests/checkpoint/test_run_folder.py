import os
import subprocess
import sys

import pytest
import torch

from pellucid import presets
from pellucid.checkpoint import RunFolder, run_folder
from pellucid.checkpoint.durable import TEMPORARY
from pellucid.errors import RunFolderError
from pellucid.nn import TransformerLM

FACTS = {"config": {"model": {"d_model": 64}}, "data": {"sha256": "ab"}, "seed": 1, "command": "pellucid train a.txt"}
WEIGHTS = {"w": torch.arange(3.0)}


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "runs" / "größe 01", FACTS)


def python(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def test_what_was_decided_comes_back(folder):
    assert RunFolder.open(folder.path).facts == FACTS
    folder.write_run({**FACTS, "plan": {"steps": 744}})
    assert RunFolder.open(folder.path).facts["plan"] == {"steps": 744}


def test_run_json_is_utf8_whatever_the_locale(folder):
    folder.write_run({"command": "pellucid train größe.txt"})
    assert "größe".encode() in (folder.path / "run.json").read_bytes()


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir(), lambda p: p.touch()])
def test_opening_what_is_no_run_is_refused(tmp_path, make):
    make(tmp_path / "x")
    with pytest.raises(RunFolderError, match="a run folder at"):
        RunFolder.open(tmp_path / "x")


def test_an_empty_folder_may_become_a_run(tmp_path):
    RunFolder.create(tmp_path, FACTS)
    assert RunFolder.open(tmp_path).facts == FACTS


def test_a_folder_of_other_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("text")
    with pytest.raises(RunFolderError, match="other files"):
        RunFolder.create(tmp_path, FACTS)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_with_results_is_never_written_over(folder):
    folder.save_checkpoint(1, WEIGHTS, {}, {})
    with pytest.raises(RunFolderError, match="holds a run"):
        RunFolder.create(folder.path, FACTS)


def test_what_was_killed_before_it_saved_anything_makes_room(folder):
    folder.tokens_path.mkdir()
    folder.append_metrics({"event": "started"})
    again = RunFolder.create(folder.path, {**FACTS, "seed": 2})
    assert RunFolder.open(folder.path).facts["seed"] == 2
    assert again.metrics() == []
    assert not folder.tokens_path.exists()


def test_what_is_still_at_work_makes_no_room(folder):
    with folder.lock(), pytest.raises(RunFolderError, match=f"process {os.getpid()}"):
        RunFolder.create(folder.path, FACTS)
    assert RunFolder.open(folder.path).facts == FACTS


@pytest.mark.skipif(os.name == "nt", reason="read-only folders are another matter there")
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_a_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(RunFolderError, match="permission denied"):
        RunFolder.create(tmp_path / "x", FACTS)


def test_a_file_in_the_way_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="choose another"):
        RunFolder.create(tmp_path / "file" / "x", FACTS)


def test_a_failed_creation_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        RunFolder.create(tmp_path / "x", {"seed": {1}})
    assert not (tmp_path / "x").exists()


def test_a_run_that_could_not_begin_leaves_nothing(folder):
    def fail():
        with folder.lock(discard_on_failure=True):
            folder.tokens_path.mkdir()
            (folder.tokens_path / "train.tokens").touch()
            folder.append_metrics({"event": "started"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not folder.path.exists()


def test_a_run_that_saved_something_stays(folder):
    def fail():
        with folder.lock(discard_on_failure=True):
            folder.save_checkpoint(1, WEIGHTS, {}, {})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert folder.latest_checkpoint()


def test_discarding_leaves_other_peoples_files(folder):
    (folder.path / "notes.txt").write_text("mine")
    folder.discard()
    assert [file.name for file in folder.path.iterdir()] == ["notes.txt"]


def test_other_settings_and_other_data_are_refused_by_name(folder):
    folder.require_same({**FACTS, "command": "another"})
    other = {**FACTS, "config": {"model": {"d_model": 128}}, "data": {"sha256": "cd"}}
    with pytest.raises(RunFolderError, match=r"config\.model\.d_model is 128, and was 64, data\.sha256 is 'cd'"):
        folder.require_same(other)


def test_a_tuple_is_the_list_that_json_made_of_it(folder):
    folder.write_run({"config": {"pattern": [1, 2]}})
    folder.require_same({"config": {"pattern": (1, 2)}})


LOCKER = """
import sys, time
from pellucid.checkpoint import RunFolder
with RunFolder.open(sys.argv[1]).lock():
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_is_gone(folder):
    process = python(LOCKER, folder.path)
    assert process.stdout.readline() == "locked\n"
    with pytest.raises(RunFolderError, match=f"process {process.pid} is writing"), folder.lock():
        pass
    process.kill()
    process.wait()
    with folder.lock():
        pass


def test_taking_the_lock_clears_what_a_killed_process_left(folder):
    (folder.checkpoints_path / f"{TEMPORARY}step-000001-1").mkdir()
    (folder.path / f"{TEMPORARY}run.json-1").touch()
    with folder.lock():
        assert not list(folder.path.rglob(f"{TEMPORARY}*"))


def test_checkpoints_go_out_and_come_back(folder):
    stream = torch.Generator().manual_seed(5).get_state()
    optimizer = {"muon": {"state": {"blocks.0.w": {"momentum": torch.randn(3)}}, "groups": [{"lr": 0.02}]}}
    state = {"random": {"torch": stream}, "place": 44, "plan": {"steps": 744, "betas": (0.9, 0.95)}}
    path = folder.save_checkpoint(880, WEIGHTS, optimizer, state, score=1.9)
    assert path == folder.path / "checkpoints" / "step-000880" == folder.latest_checkpoint() == folder.best_checkpoint()
    back = folder.load_checkpoint(path)
    assert torch.equal(back.state["random"]["torch"], stream)
    assert back.state["plan"] == state["plan"]
    assert back.optimizer["muon"]["groups"] == [{"lr": 0.02}]


def test_latest_and_best_are_kept_apart(folder):
    for step, score in ((1, 2.0), (2, 1.5), (3, 1.7), (4, 1.6)):
        folder.save_checkpoint(step, WEIGHTS, {}, {}, score=score)
    assert folder.latest_checkpoint().name == "step-000004"
    assert folder.best_checkpoint().name == "step-000002"
    assert len(folder.checkpoints()) == 2


def test_without_checkpoints_there_is_no_latest(folder):
    assert folder.latest_checkpoint() is None
    assert folder.best_checkpoint() is None


def test_metrics_go_back_to_where_a_checkpoint_was_made(folder):
    folder.append_metrics({"step": 1})
    path = folder.save_checkpoint(1, WEIGHTS, {}, {})
    folder.append_metrics({"step": 2})
    folder.rewind_metrics(folder.load_checkpoint(path))
    assert folder.metrics() == [{"step": 1}]


def test_metrics_are_on_the_disk_before_the_checkpoint_that_counts_them(folder, monkeypatch):
    forced = []
    monkeypatch.setattr(
        run_folder, "force_to_disk", lambda path: forced.append((path.name, bool(folder.checkpoints())))
    )
    folder.append_metrics({"step": 1})
    folder.save_checkpoint(1, WEIGHTS, {}, {})
    assert forced == [("metrics.jsonl", False)]


def test_a_model_goes_out_and_comes_back(folder):
    model = TransformerLM(presets.default(vocab_size=23, d_model=16, num_heads=4, num_layers=1)).eval()
    folder.save_model(model.state_dict(), model.config, step="880")
    assert folder.has_results()
    assert folder.model_config() == model.config
    token_ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(folder.load_model()(token_ids), model(token_ids))


def test_a_full_disk_is_a_sentence_and_loses_nothing(folder, monkeypatch):
    folder.save_checkpoint(1, WEIGHTS, {}, {})

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pellucid.checkpoint.tensor_file.save_file", full)
    with pytest.raises(RunFolderError, match="no space left"):
        folder.save_checkpoint(2, WEIGHTS, {}, {})
    assert folder.latest_checkpoint().name == "step-000001"
    assert not list(folder.path.rglob(f"{TEMPORARY}*"))


CRAMPED = """
import resource, sys, torch
from pellucid.checkpoint import RunFolder
from pellucid.errors import RunFolderError
folder = RunFolder.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for save in (lambda w: folder.save_checkpoint(2, w, {}, {}), lambda w: folder.save_model(w, folder.model_config())):
    try:
        save({"w": torch.zeros(1_000_000)})
    except RunFolderError as error:
        print(error)
"""


@pytest.mark.skipif(os.name == "nt", reason="limits on file sizes are another matter there")
def test_a_disk_that_refuses_half_way_is_a_sentence_and_leaves_nothing_half_made(folder):
    model = TransformerLM(presets.default(vocab_size=23, d_model=16, num_heads=4, num_layers=1)).eval()
    folder.save_model(model.state_dict(), model.config)
    folder.save_checkpoint(1, WEIGHTS, {}, {})
    before = sorted(folder.path.rglob("*"))
    output, _ = python(CRAMPED, folder.path).communicate()
    assert output.count("file too large") == 2
    assert sorted(folder.path.rglob("*")) == before
    assert folder.load_model().config == model.config


KILLER = """
import os, random, signal, sys, time
import torch
from pellucid.checkpoint import RunFolder

torch.set_num_threads(1)
folder, chance = RunFolder.open(sys.argv[1]), random.Random(sys.argv[3])


def save_for_ever(report):
    with folder.lock():
        latest = folder.latest_checkpoint()
        step = folder.load_checkpoint(latest).step if latest else 0
        while True:
            step += 1
            folder.append_metrics({"step": step})
            for _ in range(1 + step % 2):  # every other step is saved twice, and so replaced
                w = torch.full((200_000,), float(step))
                folder.save_checkpoint(step, {"w": w}, {"mean": w + 1}, {"place": step}, score=(step - 9.0) ** 2)
                os.write(report, step.to_bytes(4))


newest = 0
folder.append_metrics({"step": 0})
w = torch.zeros(200_000)
start = time.perf_counter()
for _ in range(3):
    folder.save_checkpoint(0, {"w": w}, {"mean": w + 1}, {"place": 0}, score=99.0)
usual_seconds = (time.perf_counter() - start) / 3
for _ in range(int(sys.argv[2])):
    receive, report = os.pipe()
    child = os.fork()
    if not child:
        save_for_ever(report)
    for _ in range(chance.randint(0, 2)):
        newest = int.from_bytes(os.read(receive, 4))
    time.sleep(chance.uniform(0, 1.5 * usual_seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(report)
    while finished := os.read(receive, 4):
        newest = int.from_bytes(finished)
    os.close(receive)
    unlocked = folder.checkpoints()  # a reader without the lock sees whole ones only
    assert all(folder.load_checkpoint(info.path).step == info.step for info in unlocked)
    with folder.lock():
        latest = folder.latest_checkpoint()
    if latest is None:
        assert newest == 0, "every checkpoint was lost"
        continue
    back = folder.load_checkpoint(latest)
    assert back.step >= newest, "a newer checkpoint was lost"
    newest = back.step
    assert torch.equal(back.model["w"], torch.full((200_000,), float(newest)))
    assert torch.equal(back.optimizer["mean"], back.model["w"] + 1)
    assert back.state == {"place": newest}
    assert [event["step"] for event in folder.metrics()][-1] >= newest
print(newest)
"""


def last_step_after_kills(folder, times, seed):
    process = python(KILLER, folder.path, times, seed)
    output, _ = process.communicate()
    assert process.returncode == 0
    return int(output)


def test_a_kill_during_a_save_loses_no_finished_checkpoint(folder):
    assert last_step_after_kills(folder, 10, seed=1) > 3


@pytest.mark.slow
def test_hundred_kills_during_saves_lose_no_finished_checkpoint(folder):
    assert last_step_after_kills(folder, 100, seed=2) > 30
