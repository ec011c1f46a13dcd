import json
import os

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import pellucid
from pellucid.checkpoint import RunFolder
from pellucid.data import Document, sources_of_texts
from pellucid.errors import ConfigError, DataError, RunFolderError, TokenizerError, UserError
from pellucid.text import character_tokenizer
from pellucid.train import (
    Evaluated,
    Extended,
    Planned,
    Replanned,
    Resumed,
    StepDone,
    YardsticksMeasured,
    resume,
    run,
    train,
)
from pellucid.train.device import Capabilities
from pellucid.yardsticks import Score
from tests.train.small_run import Heard, small_request, small_sources, small_text, stop_after, train_small


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """A whole run, to be looked at only: its folder, its last event, its events."""
    out = tmp_path_factory.mktemp("runs") / "a book"
    finished, heard = train_small(out)
    return RunFolder.open(out), finished, heard


@pytest.fixture
def stopped(tmp_path):
    """A run that was stopped after three of its six steps."""
    finished, _ = train_small(tmp_path / "run", watch=stop_after(3))
    assert not finished.completed
    return tmp_path / "run"


# --- what it leaves


def test_a_run_leaves_the_model_its_tokenizer_its_state_and_all_it_said(finished_run):
    folder, finished, _ = finished_run
    names = {path.name for path in folder.path.iterdir()}
    expected = {
        "run.json",
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "tokens",
        "metrics.jsonl",
        "checkpoints",
    }
    assert names - {".lock"} == expected
    assert finished.completed
    assert pellucid.load(folder.path).generate("the ", max_tokens=5, temperature=0)


def test_run_json_says_everything_that_was_decided(finished_run):
    facts = finished_run[0].facts
    assert facts["command"][0] == "pellucid"
    assert facts["seed"] == 0
    assert facts["data"]["fingerprint"] == small_sources().fingerprint
    assert facts["tokenizer"]["fingerprint"] == pellucid.load(finished_run[0].path).tokenizer.fingerprint
    assert facts["plan"]["variant"] == "float32, written-out attention, eager"
    assert {"threads", "instruction_set", "torch", "pellucid", "device"} <= facts["environment"].keys()
    assert {"training", "optimizer", "schedule", "model", "batch_size", "initialization"} <= facts["config"].keys()
    assert facts["yardsticks"]["best_ngram"] > 0
    assert facts["model"]["vocab_size"] == 22


def test_metrics_hold_every_event_in_order(finished_run):
    folder, _, heard = finished_run
    lines = folder.metrics_path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(json.dumps([event.as_json() for event in heard]))
    kinds = [type(event).__name__ for event in heard]
    before = ["TextRead", "TextTokenized", "YardsticksMeasured", "VariantTried", "Planned"]
    looks = [*["StepDone"] * 3, "ModuleHealth", "Evaluated", "Sampled", "Saved"]
    assert kinds == [*before, *looks, *looks, "Finished"]


def test_the_last_event_is_about_the_model_that_was_kept(finished_run):
    folder, finished, _ = finished_run
    best = folder.load_checkpoint(folder.best_checkpoint())
    assert finished.best_step == best.step
    assert finished.held_out_even == best.score
    assert finished.held_out == pytest.approx((finished.held_out_even + finished.held_out_odd) / 2, rel=0.01)
    assert 0 < len(finished.copied) <= len(finished.sample)
    assert finished.out == str(folder.path)


def test_one_process_is_no_group_of_processes(finished_run):
    assert not (torch.distributed.is_available() and torch.distributed.is_initialized())


# --- what it refuses, and that nothing is left


def texts(*texts):
    return sources_of_texts([Document(str(number), text) for number, text in enumerate(texts)])


BAD = {
    "too short to be split": ({"sources": texts("short")}, DataError),
    "context longer than the text": ({"model": {"context_length": 5000}}, DataError),
    "no such tokenizer": ({"tokenizer": "nowhere/tokenizer.json"}, TokenizerError),
    "too small a vocabulary": ({"tokenizer": "bpe", "vocab_size": 3}, TokenizerError),
    "a prompt with unknown characters": ({"prompt": "Ω"}, TokenizerError),
    "heads that do not divide": ({"model": {"num_heads": 3}}, UserError),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_work_is_one_sentence_and_leaves_nothing(tmp_path, name):
    changes, kind = BAD[name]
    with pytest.raises(kind) as caught:
        train_small(tmp_path / "runs" / "deep" / "run", **changes)
    assert str(caught.value).count("\n") == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
def test_ctrl_c_before_there_is_anything_to_save_leaves_nothing(tmp_path, number):
    """At each event up to the plan and the first step."""

    class Interrupted(Heard):
        def __call__(self, event):
            if len(self) == number:
                raise KeyboardInterrupt
            self.append(event)

    with pytest.raises(KeyboardInterrupt):
        train(small_request(tmp_path / "runs" / "run"), Interrupted())
    assert list(tmp_path.iterdir()) == []


def test_memory_that_does_not_suffice_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pellucid.train.run_model.TransformerLM", lambda config: torch.empty(10**15))
    with pytest.raises(UserError, match="fit into the memory"):
        train_small(tmp_path / "runs" / "run")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "notes.txt").touch()
    with pytest.raises(DataError):
        train_small(tmp_path / "runs" / "run", sources=texts("short"))
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["notes.txt"]


def test_ctrl_c_after_something_was_saved_keeps_it(tmp_path):
    class Interrupted(Heard):
        def __call__(self, event):
            if isinstance(event, StepDone) and event.step == 5:
                raise KeyboardInterrupt
            self.append(event)

    with pytest.raises(KeyboardInterrupt):
        train(small_request(tmp_path / "run"), Interrupted())
    assert RunFolder.open(tmp_path / "run").latest_checkpoint().name == "step-000003"
    heard = Heard()
    assert resume(tmp_path / "run", heard).completed
    assert [event.step for event in heard.of(StepDone)] == [4, 5, 6]


@pytest.mark.parametrize("make", [lambda out: out.touch(), lambda out: (out.mkdir(), (out / "thesis.txt").touch())])
def test_what_is_no_run_of_ours_is_left_alone(tmp_path, make):
    make(tmp_path / "out")
    with pytest.raises(RunFolderError, match="new or empty folder"):
        train_small(tmp_path / "out")
    assert (tmp_path / "out").exists()


# --- going on


def test_the_same_request_in_the_same_folder_goes_on_where_it_stopped(stopped):
    finished, heard = train_small(stopped)
    assert finished.completed
    assert [event.step for event in heard.of(StepDone)] == [4, 5, 6]
    assert not heard.of(Planned)
    (resumed,) = heard.of(Resumed)
    assert (resumed.step, resumed.steps, resumed.note) == (3, 6, "")
    assert resumed.variant == "float32, written-out attention, eager"


def test_the_last_look_at_a_stopped_run_does_not_choose_what_is_kept(tmp_path, monkeypatch):
    """It was the best there ever was, and a run that had not been stopped would not have seen it."""
    bits = iter([9.0, 3.0, 2.0, 4.0])  # while pausing is timed; after steps 3, 4 and 6
    monkeypatch.setattr(
        "pellucid.train.parts.evaluate", lambda *_, **__: Score("model", (next(bits),) * 10, (15,) * 10)
    )
    finished, _ = train_small(tmp_path / "run", watch=stop_after(4))
    assert finished.best_step == 4
    assert weights_step(tmp_path / "run") == "4"  # for whoever wants to use it now
    assert resume(tmp_path / "run", Heard()).best_step == 3
    assert weights_step(tmp_path / "run") == "3"


def weights_step(path):
    with safe_open(path / "model.safetensors", framework="pt") as file:
        return file.metadata()["step"]


def test_the_text_may_have_moved(stopped):
    request = small_request(stopped)
    request = type(request)(**{**vars(request), "name": "elsewhere/words.txt"})
    assert train(request, Heard()).completed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 1}, "seed is 1, and was 0"),
        ({"steps": 12}, "config.training.steps is 12, and was 6"),
        ({"model": {"d_model": 64}}, "config.model.d_model is 64, and was 32"),
        ({"sources": small_sources(3100)}, "data.characters is 3100, and was 3000"),
    ],
)
def test_another_request_in_the_same_folder_is_refused_naming_the_difference(stopped, changes, said):
    before = sorted(path.name for path in stopped.rglob("*"))
    with pytest.raises(RunFolderError, match=said):
        train_small(stopped, **changes)
    assert sorted(path.name for path in stopped.rglob("*")) == before


def test_a_run_that_is_complete_is_not_run_again(finished_run):
    folder, *_ = finished_run
    before = folder.metrics_path.read_bytes()
    for again in (lambda: train_small(folder.path), lambda: resume(folder.path, Heard())):
        with pytest.raises(RunFolderError, match="has done all its 6 steps"):
            again()
    assert folder.metrics_path.read_bytes() == before


def test_nothing_is_no_run(tmp_path):
    with pytest.raises(RunFolderError, match="nothing there"):
        resume(tmp_path / "run", Heard())
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_saved_nothing_cannot_go_on_but_begins_anew(tmp_path):
    request = small_request(tmp_path / "run")
    RunFolder.create(request.out, request.first_facts(request.recipe()))  # and then it was killed
    with pytest.raises(RunFolderError, match="to go on from"):
        resume(request.out, Heard())
    assert train(request, Heard()).completed


def test_a_run_at_work_is_not_taken_from_it(stopped):
    with RunFolder.open(stopped).lock():
        for attempt in (lambda: resume(stopped, Heard()), lambda: train_small(stopped)):
            with pytest.raises(RunFolderError, match=f"process {os.getpid()}"):
                attempt()


def test_another_tokenizer_in_the_folder_is_noticed(stopped):
    other = character_tokenizer([small_text().replace("y", "Y")])
    other.save(stopped / "tokenizer.json")
    with pytest.raises(DataError, match="ids of another"):
        resume(stopped, Heard())
    with pytest.raises(TokenizerError, match="another of the same size"):
        pellucid.load(stopped)


def test_another_machine_is_told_of(stopped):
    folder = RunFolder.open(stopped)
    folder.write_run(folder.facts | {"environment": folder.facts["environment"] | {"torch": "2.0"}})
    heard = Heard()
    resume(stopped, heard)
    assert "and was 2.0" in heard.of(Resumed)[0].note


def test_a_machine_that_cannot_compile_goes_on_eagerly_and_says_so(stopped, monkeypatch):
    folder = RunFolder.open(stopped)
    compiled = "float32, written-out attention, compiled"
    folder.write_run(folder.facts | {"plan": folder.facts["plan"] | {"variant": compiled}})
    monkeypatch.setattr("pellucid.train.trial.Capabilities.of_this_machine", Capabilities)
    heard = Heard()
    assert resume(stopped, heard).completed
    (resumed,) = heard.of(Resumed)
    assert resumed.variant == "float32, written-out attention, eager"
    assert f"was {compiled}" in resumed.note


def test_a_device_that_is_not_here_is_a_sentence(stopped, monkeypatch):
    monkeypatch.setattr("pellucid.train.run_model.Capabilities.of_this_machine", Capabilities)
    folder = RunFolder.open(stopped)
    folder.write_run(folder.facts | {"plan": folder.facts["plan"] | {"device": "cuda"}})
    with pytest.raises(UserError, match="a device that torch finds here"):
        resume(stopped, Heard())


def test_a_new_plan_is_in_run_json_too(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {})
    event = Replanned(step=1, old_steps=10, new_steps=8, step_seconds=1.0, planned_step_seconds=0.8)
    heard = Heard()
    run._recorded(folder, heard)(event)
    assert RunFolder.open(folder.path).facts["replan"]["new_steps"] == 8
    assert folder.metrics() == [event.as_json()]
    assert heard == [event]


def test_where_nothing_is_held_out_the_last_step_is_kept_and_no_figure_is_made_up(tmp_path):
    sources = sources_of_texts([Document("words", small_text())], held_out_percent=0)
    finished, heard = train_small(tmp_path / "run", sources=sources, watch=stop_after(3))
    assert (finished.held_out, finished.yardsticks, finished.best_step) == (None, {}, 3)
    finished = resume(tmp_path / "run", heard)
    assert (finished.completed, finished.held_out, finished.best_step) == (True, None, 6)
    assert not heard.of(YardsticksMeasured)
    assert {event.held_out for event in heard.of(Evaluated)} == {None}
    folder = RunFolder.open(tmp_path / "run")
    latest = folder.load_checkpoint(folder.latest_checkpoint())
    for name, tensor in folder.load_model().state_dict().items():
        assert torch.equal(tensor, latest.model[name])


def cut(checkpoint):
    (checkpoint / "model.safetensors").write_bytes(b"")


def test_steps_that_a_damaged_checkpoint_had_are_told_and_taken_again(stopped):
    folder = RunFolder.open(stopped)
    folder.append_metrics({"event": "Saved", "step": 5, "path": "damaged, and so not listed"})
    heard = Heard()
    assert resume(stopped, heard).completed
    (resumed,) = heard.of(Resumed)
    assert (resumed.step, resumed.steps_again) == (3, 2)


def test_where_every_checkpoint_is_damaged_nobody_is_told_to_remove_the_run(stopped):
    for info in RunFolder.open(stopped).checkpoints():
        cut(info.path)
    with pytest.raises(RunFolderError, match="damaged or gone: put them back") as caught:
        resume(stopped, Heard())
    assert "remove" not in str(caught.value)


# --- another last step


def test_a_run_that_goes_on_to_another_last_step_says_so_and_keeps_to_it(stopped):
    heard = Heard()
    resume(stopped, heard, steps=9, watch=stop_after(1))
    (moved,) = heard.of(Extended)
    assert (moved.step, moved.old_steps, moved.new_steps) == (3, 6, 9)
    finished = resume(stopped, Heard())  # nobody needs to say it twice
    assert (finished.completed, finished.steps) == (True, 9)
    steps = [line["step"] for line in RunFolder.open(stopped).metrics() if line["event"] == "StepDone"]
    assert steps == list(range(1, 10))


def test_a_run_that_has_done_all_its_steps_can_be_given_more(tmp_path):
    train_small(tmp_path / "run")
    finished = resume(tmp_path / "run", Heard(), steps=8)
    assert (finished.completed, finished.step) == (True, 8)


def test_what_was_given_more_and_has_done_it_is_complete(tmp_path):
    train_small(tmp_path / "run")
    resume(tmp_path / "run", Heard(), steps=8)
    with pytest.raises(RunFolderError, match=r"has done all its 8 steps: .* --steps 16"):
        train_small(tmp_path / "run")


def test_what_was_given_more_and_was_killed_behind_its_last_step_is_closed(tmp_path):
    train_small(tmp_path / "run")
    resume(tmp_path / "run", Heard(), steps=8)
    metrics = RunFolder.open(tmp_path / "run").metrics_path
    lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = lines[: next(n for n, line in enumerate(lines) if '"Saved", "step": 8' in line) + 1]
    metrics.write_text("".join(kept), encoding="utf-8")
    finished = resume(tmp_path / "run", Heard())
    assert (finished.completed, finished.step, finished.steps) == (True, 8, 8)


def test_some_more_minutes_are_some_more_steps(stopped):
    seconds = RunFolder.open(stopped).facts["plan"]["step_seconds"]
    heard = Heard()
    resume(stopped, heard, minutes=5 * seconds / 60 + 1e-9, watch=stop_after(1))
    assert heard.of(Extended)[0].new_steps == 8


def test_no_run_goes_on_to_a_step_it_has_done(stopped):
    with pytest.raises(RunFolderError, match=r"more than the 3 steps that the run in .* has done, but got --steps 2"):
        resume(stopped, Heard(), steps=2)


@pytest.mark.parametrize(
    "changes", [{"ema": 0.5}, {"activation_checkpointing": True}, {"micro_batch_size": 3, "keep": 3}]
)
def test_a_stopped_run_goes_on_to_the_same_end_whatever_it_keeps(tmp_path, changes):
    train_small(tmp_path / "through", **changes)
    train_small(tmp_path / "stopped", watch=stop_after(3), **changes)
    resume(tmp_path / "stopped", Heard())
    through, stopped = (RunFolder.open(tmp_path / name) for name in ("through", "stopped"))
    for file in ("model.safetensors", "checkpoints/step-000006/optimizer.safetensors"):
        here, there = load_file(through.path / file), load_file(stopped.path / file)
        assert here.keys() == there.keys()
        assert all(torch.equal(here[name], there[name]) for name in here)


def test_tokens_per_step_are_rows(tmp_path):
    request = small_request(tmp_path / "run", batch_size=None, tokens_per_step=128)
    assert request.recipe().batch_size == 8
    request = small_request(tmp_path / "run", batch_size=None, tokens_per_step=100)
    with pytest.raises(ConfigError, match=r"whole rows of 16 tokens, but got 100: choose 96 or 112"):
        request.recipe()


def test_a_model_that_was_imported_is_trained_on_and_nobody_is_told_to_remove_it(tmp_path):
    RunFolder.create(tmp_path / "run", {"imported": {"kind": "a GGUF file"}})
    with pytest.raises(RunFolderError, match="imported: train it on with pellucid train TEXT --from") as caught:
        resume(tmp_path / "run", Heard())
    assert "remove" not in str(caught.value)
