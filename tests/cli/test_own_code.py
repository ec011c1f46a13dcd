import signal
from pathlib import Path

import pytest
import torch

import pellucid
from pellucid import own_parts
from pellucid.checkpoint import RunFolder
from pellucid.cli import main
from pellucid.cli.train_screen import TrainScreen
from pellucid.errors import ModelFileError
from pellucid.nn.own_part import CLASSES
from pellucid.train import StepDone
from pellucid.train.device import Capabilities
from tests.own_code import MINE
from tests.train.small_run import cut_short, small_text

WORDS = """train words.txt --tokenizer char --steps 6 --batch-size 4 --evaluations 2 --precision float32 --compile off
    --model.d-model 32 --model.num-heads 2 --model.num-layers 1 --model.context-length 16 --out run
    --model.feed-forward mine.py:ReGLU --model.norm mine.py:Scaled --model.attention mine.py:Halved"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cut_short(monkeypatch)
    forget()
    Path("words.txt").write_text(small_text(), encoding="utf-8")
    Path("mine.py").write_text(MINE, encoding="utf-8")


def forget():
    """As a new process."""
    CLASSES.clear()
    own_parts.check.cache_clear()


def pellucid_run(text):
    forget()
    return main.run(text.split())


def test_a_model_of_ones_own_parts_trains_is_kept_and_writes_with_consent(capsys):
    assert pellucid_run(WORDS) == 0
    assert len(list(Path("run/own_parts").iterdir())) == 1
    own = "mine.py:Scaled, mine.py:ReGLU, mine.py:Halved"
    assert f"Of your own: {own}, kept in own_parts/. No other runtime has it: no export." in capsys.readouterr().out
    assert pellucid_run("generate run --max-tokens 5") == 2
    assert "your consent to run the code" in capsys.readouterr().err
    assert pellucid_run("generate run --max-tokens 5 --own-code") == 0
    assert pellucid_run("evaluate run") == 2
    assert pellucid_run("evaluate run --own-code") == 0
    forget()
    with pytest.raises(ModelFileError, match="own_code=True"):
        pellucid.load("run")
    model = pellucid.load("run", own_code=True).model
    assert not torch.isnan(model(torch.zeros(1, 4, dtype=torch.long))).any()


def test_a_run_goes_on_with_consent_or_by_the_command_that_began_it(capsys):
    assert pellucid_run(WORDS) == 0
    capsys.readouterr()
    assert pellucid_run("train --resume run --steps 8") == 2
    assert "your consent to run the code" in capsys.readouterr().err
    assert pellucid_run("train --resume run --steps 8 --own-code") == 0
    Path("mine.py").write_text(MINE + "# changed\n", encoding="utf-8")
    assert pellucid_run(WORDS) == 2
    assert "config.model.attention is 'mine.py:Halved@" in capsys.readouterr().err


def test_a_recipe_that_names_code_needs_consent(capsys):
    Path("recipe.toml").write_text('[model]\nfeed_forward = "mine.py:ReGLU"\n', encoding="utf-8")
    small = WORDS.partition(" --model.feed")[0].replace("train words.txt", "train recipe.toml words.txt")
    assert pellucid_run(small) == 2
    assert "your consent to run the code that recipe.toml names, but got none for" in capsys.readouterr().err
    assert pellucid_run(small + " --own-code") == 0


def test_a_mistake_in_it_is_a_sentence_and_leaves_nothing(capsys):
    Path("mine.py").write_text(
        MINE.replace("super().__init__(d_model, d_ff, torch.relu, bias)", "1 / 0"), encoding="utf-8"
    )
    assert pellucid_run(WORDS) == 2
    said = capsys.readouterr().err
    assert "NAME(d_model, d_ff, bias) with forward(x)" in said
    assert "ZeroDivisionError in line" in said
    assert not Path("run").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.skipif(Capabilities.of_this_machine().compiler is None, reason="no C++ compiler here")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_compiles_in_any_precision(precision):
    compiled = WORDS.replace("--compile off", "--compile on").replace("float32", precision)
    assert pellucid_run(compiled) == 0
    variant = RunFolder.open("run").facts["plan"]["variant"]
    assert variant.startswith(precision)
    assert variant.endswith("compiled")


def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(monkeypatch):
    assert pellucid_run(WORDS.replace("--out run", "--out whole")) == 0
    show = TrainScreen.show

    def shown(self, event):
        show(self, event)
        if isinstance(event, StepDone) and event.step == 4:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(TrainScreen, "show", shown)
    assert pellucid_run(WORDS) == 143
    monkeypatch.setattr(TrainScreen, "show", show)
    assert pellucid_run("train --resume run --own-code") == 0
    whole, cut = (RunFolder.open(path).load_model().state_dict() for path in ("whole", "run"))
    assert all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())
