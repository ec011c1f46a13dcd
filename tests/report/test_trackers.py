"""Trackers get the figures of the run, and cannot harm it."""

import importlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import types

import pytest

from pellucid.errors import UserError
from pellucid.report import trackers
from pellucid.report.trackers import Trackers, scalars_of, texts_of, tracker_names
from pellucid.train import Evaluated, ModuleHealth, Noticed, Resumed, Sampled, StepDone
from tests.report.invented_run import evaluated, invented, step


class Kept:
    """A tracker that remembers."""

    def __init__(self, folder, config, first):
        self.config, self.first, self.numbers, self.texts, self.closed = config, first, [], [], False
        Kept.last = self

    def scalars(self, step, values):
        self.numbers.append((step, dict(values)))

    def text(self, step, name, words):
        self.texts.append((step, name, words))

    def close(self):
        self.closed = True
        return "in memory"


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setitem(trackers.TRACKERS, "tensorboard", Kept)
    return Kept


def _follow(names, folder, events) -> list[str]:
    """Let trackers hear the events; what they say."""
    said = []
    with Trackers(names, folder, said.append) as tracking:
        for event in events:
            tracking(event)
    return said


def test_a_tracker_hears_every_step_evaluation_yardstick_and_sample(run, heard, kept):
    said = _follow(["tensorboard"], run.path, heard)
    numbers = kept.last.numbers
    assert [step for step, values in numbers if "train/gradient_norm" in values] == list(range(1, 13))
    assert [step for step, values in numbers if "held_out/bits_per_character" in values] == [4, 8, 12]
    assert any("yardsticks/xz" in values for step, values in numbers if step == 0)
    first = next(values for _, values in numbers if "train/gradient_norm" in values)
    assert {"learning_rate/head", "train/tokens_per_second"} <= set(first)
    assert [name for _, name, _ in kept.last.texts] == ["sample", "sample", "sample", "closing_sample"]
    assert kept.last.closed
    assert said == ["Tracked by tensorboard: in memory"]


def test_a_tracker_is_told_what_was_decided_and_not_the_alphabet(run, heard, kept):
    _follow(["tensorboard"], run.path, heard)
    config = kept.last.config
    assert config["plan"]["steps"] == 12
    assert config["training"]["batch_size"] == 4
    assert "alphabet" not in json.dumps(config)


@pytest.mark.parametrize("when", ["__init__", "scalars", "text", "close"])
def test_a_tracker_that_fails_is_told_once_and_the_run_does_not_notice(run, heard, kept, monkeypatch, when):
    calls = []

    def fails(*given, **named):
        calls.append(given)
        raise RuntimeError("no room\nleft")

    monkeypatch.setattr(Kept, when, fails)
    said = _follow(["tensorboard"], run.path, heard)
    assert len(said) == len(calls) == 1
    assert "tensorboard failed and is left out from here on (RuntimeError: no room left)" in said[0]


def test_one_that_fails_does_not_stop_the_others(run, heard, kept, monkeypatch):
    def fails(*given):
        raise OSError("gone")

    monkeypatch.setitem(trackers.TRACKERS, "wandb", fails)
    assert len(_follow(["wandb", "tensorboard"], run.path, heard)) == 2
    assert kept.last.numbers


def test_nothing_that_a_tracker_prints_reaches_the_screen(run, heard, kept, monkeypatch, capsys):
    monkeypatch.setattr(Kept, "scalars", lambda *given: sys.stdout.write("Look at me!"))
    _follow(["tensorboard"], run.path, heard)
    assert capsys.readouterr().out == ""


def test_a_run_that_goes_on_is_tracked_from_there(tmp_path, kept):
    folder = invented(tmp_path / "run", step(1))
    with Trackers(["tensorboard"], folder.path, print) as tracking:
        tracking(Resumed(step=40, steps=100, path="", variant="", out=""))
    assert kept.last.first == 41
    assert kept.last.config["plan"]["steps"] == 100


def test_numbers_that_are_none_or_not_finite_are_left_out(tmp_path, kept):
    folder = invented(tmp_path / "run", step(1))
    known = step(1, steps=2, seconds_left=0.0, train=None, gradient_norm=math.nan)
    with Trackers(["tensorboard"], folder.path, print) as tracking:
        tracking(Resumed(step=0, steps=2, path="", variant="", out=""))
        tracking(StepDone(**{name: value for name, value in known.items() if name != "event"}))
    assert set(kept.last.numbers[0][1]) & {"train/running_mean", "train/gradient_norm"} == set()


def test_module_health_is_numbers_and_what_was_noticed_is_text():
    health = ModuleHealth(step=5, modules={"blocks.0": {"weight": 1.0, "entropy": None}}, seconds=0.1)
    assert dict(scalars_of(health)) == {"health/weight/blocks.0": 1.0, "health/entropy/blocks.0": None}
    assert dict(texts_of(Noticed(step=5, kind="module", sentence="so"))) == {"noticed": "so"}
    assert dict(texts_of(Sampled(step=5, prompt="To ", text="be"))) == {"sample": "To be"}


@pytest.mark.parametrize(
    ("asked", "names"), [("", ()), ("tensorboard", ("tensorboard",)), (" TensorBoard,,tensorboard", ("tensorboard",))]
)
def test_names_stand_in_a_list_with_commas(asked, names, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert tracker_names(asked) == names


def test_a_library_that_is_missing_is_a_sentence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"wandb to be installed for --track wandb.*pip install wandb"):
        tracker_names("wandb")


def _wandb(monkeypatch, **settings):
    """A stand-in with the same face; it notes what it is asked."""
    asked = types.SimpleNamespace(logged=[], init=None, finished=False)

    class Run:
        id = "abc123"

        def log(self, values, step):
            asked.logged.append((step, values))

        def finish(self):
            asked.finished = True

    library = types.ModuleType("wandb")
    library.init = lambda **given: setattr(asked, "init", given) or Run()
    library.Settings = lambda **given: given
    library.Table = lambda columns, data: ("table", columns, data)
    library.api = types.SimpleNamespace(api_key=settings.get("key"))
    monkeypatch.setitem(sys.modules, "wandb", library)
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    return asked


def test_wandb_without_a_login_is_kept_on_this_machine(run, heard, monkeypatch):
    asked = _wandb(monkeypatch)
    said = _follow(["wandb"], run.path, heard)
    assert (asked.init["mode"], asked.init["project"], asked.init["name"]) == ("offline", "pellucid", "words-01")
    assert [step for step, values in asked.logged if "train/gradient_norm" in values] == list(range(1, 13))
    assert any(values.get("sample", ("",))[0] == "table" for _, values in asked.logged)
    assert asked.finished
    assert said == [f"Tracked by wandb: wandb sync {run.path}/wandb/offline-run-*"]


def test_wandb_with_a_login_is_sent_unless_its_own_mode_says_otherwise(tmp_path, monkeypatch):
    folder = invented(tmp_path / "run", step(1))
    asked = _wandb(monkeypatch, key="k")
    for mode, expected in (("", "online"), ("offline", "offline")):
        monkeypatch.setenv("WANDB_MODE", mode)
        trackers.WeightsAndBiases(folder.path, {}, 0)
        assert asked.init["mode"] == expected


def test_wandb_goes_on_with_the_same_run(tmp_path, monkeypatch):
    folder, asked = invented(tmp_path / "run", step(1)), _wandb(monkeypatch)
    trackers.WeightsAndBiases(folder.path, {}, 0)
    assert "id" not in asked.init
    trackers.WeightsAndBiases(folder.path, {}, 41)
    assert (asked.init["id"], asked.init["resume"]) == ("abc123", "allow")


@pytest.mark.real
def test_tensorboard_reads_back_what_was_tracked(run, heard):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    _follow(["tensorboard"], run.path, heard)
    read = EventAccumulator(str(run.path / "tensorboard"))
    read.Reload()
    steps = [event for event in heard if isinstance(event, StepDone)]
    told = read.Scalars("train/bits_per_character")
    assert [scalar.step for scalar in told] == [event.step for event in steps]
    assert [scalar.value for scalar in told] == pytest.approx([event.bits_per_character for event in steps], rel=1e-6)
    scores = [event.held_out for event in heard if isinstance(event, Evaluated)]
    assert [scalar.value for scalar in read.Scalars("held_out/bits_per_character")] == pytest.approx(scores, rel=1e-6)
    samples = [event.text for event in heard if isinstance(event, Sampled)]
    texts = [event.tensor_proto.string_val[0].decode() for event in read.Tensors("sample/text_summary")]
    assert [text.replace("\n    ", "\n").removeprefix("    ") for text in texts] == samples


@pytest.mark.real
def test_tensorboard_forgets_what_an_earlier_try_wrote_behind_the_checkpoint(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for first, last in ((0, 10), (6, 12)):
        board = trackers.TensorBoard(tmp_path, {}, first)
        for number in range(first, last):
            board.scalars(number, {"x": float(first)})
        board.close()
    read = EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert [(scalar.step, scalar.value) for scalar in read.Scalars("x")] == [
        *((number, 0.0) for number in range(6)),
        *((number, 6.0) for number in range(6, 12)),
    ]


@pytest.mark.real
def test_trackio_keeps_the_figures_on_this_machine(tmp_path):
    pytest.importorskip("trackio")
    script = f"""
import sys, pathlib
from pellucid.report.trackers import Trackio
tracker = Trackio(pathlib.Path({str(tmp_path / "book-01")!r}), {{"seed": 1}}, 0)
for step in range(3):
    tracker.scalars(step, {{"train/x": float(step)}})
tracker.text(2, "sample", "to be")
print(tracker.close())
from trackio.sqlite_storage import SQLiteStorage
found = SQLiteStorage.get_logs("pellucid", "book-01")
print(sorted((row["step"], row["train/x"]) for row in found if "train/x" in row))
"""
    environment = os.environ | {"TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, encoding="utf-8", check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "[(0, 0.0), (1, 1.0), (2, 2.0)]" in done.stdout.splitlines()


def test_figures_of_an_invented_run_have_the_names_of_the_metrics():
    event = Evaluated(steps=1, is_best=True, held_out_even=1.0, held_out_odd=2.0, **_fields(evaluated(1)))
    assert dict(scalars_of(event))["held_out/where_it_did_not_choose"] == 2.0


def _fields(event):
    return {name: value for name, value in event.items() if name != "event"}
