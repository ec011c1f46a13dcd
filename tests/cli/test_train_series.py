import json
import signal
from pathlib import Path

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.cli import main, train_series
from pellucid.errors import TrainingStopped
from pellucid.train import StepDone
from tests.train.small_run import cut_short, small_text

RECIPE = """
sources = ["words.txt"]
tokenizer = "char"
seeds = [0, 1]

[training]
steps = 6
batch_size = 4
evaluations = 3
precision = "float32"
compile = "off"

[model]
d_model = 32
num_heads = 2
num_layers = 1
context_length = 16
dropout = 0.1

[variants.baseline]
[variants.no-norm]
model.norm = "none"
"""
NAMES = ["baseline-seed-0", "no-norm-seed-0", "baseline-seed-1", "no-norm-seed-1"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cut_short(monkeypatch)
    Path("words.txt").write_text(small_text(), encoding="utf-8")
    Path("recipe.toml").write_text(RECIPE, encoding="utf-8")


@pytest.fixture
def no_page(monkeypatch):
    """Pictures take longer than these runs."""
    monkeypatch.setattr(train_series, "write_page", lambda comparison, path: None)


def pellucid_train(*words):
    return main.run(["train", "recipe.toml", *words])


def weights(name):
    """What a model holds, to the last bit; the order of the words in its header is not always the same."""
    content = Path(name, "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def held_out(name):
    return [event["passage_bits"] for event in RunFolder.open(name).metrics() if event["event"] == "Evaluated"]


@pytest.fixture
def on_step(monkeypatch):
    """Do something when a step of the whole series is done."""

    def come(number, act):
        hear, seen = train_series.Series.hear, []

        def heard(self, name, event):
            hear(self, name, event)
            if isinstance(event, StepDone):
                seen.append(event)
                if len(seen) == number:
                    act()

        monkeypatch.setattr(train_series.Series, "hear", heard)

    return come


def test_all_runs_are_made_compared_and_told_in_a_few_lines(capsys):
    assert pellucid_train("--out", "all") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert sorted(path.name for path in Path("all").iterdir() if path.is_dir()) == sorted(NAMES)
    assert Path("all/compare.html").exists()
    lines = said.out.splitlines()
    assert lines[1] == "Recipe: recipe.toml, 4 runs of 6 steps, into all: baseline, no-norm; 2 seeds each."
    assert sum(line.startswith("Text:") for line in lines) == 1
    assert len([line for line in lines if line.startswith("Run ")]) == 4
    assert "The same batches for all: same text, split and tokenizer, 4 x 16 tokens a step, seeds 0, 1." in lines
    assert "  model.norm: rms; none" in lines
    assert len(lines) < 25


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_run_of_a_series_is_the_run_that_one_makes_alone():
    assert pellucid_train("--out", "all", "--seed", "1") == 0
    alone = """train words.txt --tokenizer char --steps 6 --batch-size 4 --evaluations 3 --precision float32
        --compile off --model.d-model 32 --model.num-heads 2 --model.num-layers 1 --model.context-length 16
        --model.dropout 0.1 --model.norm none --seed 1 --out alone"""
    assert main.run(alone.split()) == 0
    assert weights("all/no-norm-seed-1") == weights("alone")
    assert held_out("all/no-norm-seed-1") == held_out("alone")


@pytest.mark.usefixtures("no_page")
def test_interrupted_it_goes_on_where_it_was_to_the_same_bits(on_step, capsys):
    Path("recipe.toml").write_text(RECIPE.replace("[0, 1]", "[0]"), encoding="utf-8")
    assert pellucid_train("--out", "whole") == 0
    on_step(9, lambda: signal.raise_signal(signal.SIGINT))
    assert pellucid_train("--out", "cut") == 130
    assert "Stopped; what is done is kept in cut. Go on: pellucid" in capsys.readouterr().out
    finished = weights("cut/baseline-seed-0")
    assert pellucid_train("--out", "cut") == 0
    said = capsys.readouterr().out
    assert "Run 1 of 2, baseline, seed 0: held out" in said
    assert "Run 2 of 2, no-norm, seed 0: goes on from step 3 of 6." in said
    assert weights("cut/baseline-seed-0") == finished
    for name in NAMES[:2]:
        assert weights(f"whole/{name}") == weights(f"cut/{name}"), name
        assert held_out(f"whole/{name}") == held_out(f"cut/{name}"), name


@pytest.mark.usefixtures("no_page")
def test_a_run_that_goes_bad_is_told_and_the_others_go_on(monkeypatch, capsys):
    train, tried = train_series.train, []

    def bad(request, *rest, **others):
        tried.append(request.out.name)
        if request.model.get("norm") == "none":
            raise TrainingStopped("finite losses", came="nan", remedy="lower the rates")
        return train(request, *rest, **others)

    monkeypatch.setattr(train_series, "train", bad)
    assert pellucid_train("--out", "all") == 0
    said = capsys.readouterr().out
    assert "no-norm, seed 0: no result. Expected finite losses, but got nan: lower the rates. The other runs go" in said
    assert "no-norm-seed-1 ended before anything was saved." in said
    assert tried == NAMES
    assert pellucid_train("--out", "all") == 0
    assert tried == NAMES
    assert "no-norm, seed 1: not tried again. Expected finite losses" in capsys.readouterr().out


def test_mistakes_are_found_before_the_first_run(capsys):
    Path("recipe.toml").write_text(RECIPE + "[variants.odd]\nmodel.num_heads = 3\n", encoding="utf-8")
    assert pellucid_train("--out", "all") == 2
    said = capsys.readouterr().err
    assert "num_heads to divide d_model" in said
    assert "in variant odd of recipe.toml" in said
    assert not Path("all").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_variant_may_be_added_later_but_another_recipe_in_the_same_folder_is_refused(capsys):
    assert pellucid_train("--out", "all", "--seed", "0") == 0
    assert pellucid_train("--out", "all", "--seed", "0", "--model.d-model", "64") == 2
    assert "another: config.model.d_model is 64, and was 32" in capsys.readouterr().err
    before = Path("all/baseline-seed-0/metrics.jsonl").read_bytes()
    Path("recipe.toml").write_text(RECIPE + "[variants.wide]\nmodel.d_ff = 64\n", encoding="utf-8")
    assert pellucid_train("--out", "all", "--seed", "0") == 0
    assert Path("all/baseline-seed-0/metrics.jsonl").read_bytes() == before
    assert RunFolder.open("all/wide-seed-0").model_config().d_ff == 64


def test_without_out_the_folder_has_the_recipes_name():
    Path("recipe.toml").write_text(RECIPE.partition("[variants")[0], encoding="utf-8")
    assert pellucid_train("--seed", "3") == 0
    facts = json.loads(Path("runs/recipe/recipe-seed-3/run.json").read_text(encoding="utf-8"))
    assert facts["seed"] == 3
