import dataclasses
import re
import subprocess
import sys

import pytest

from pellucid.cli.train_flags import TrainFlags, field_help, given, parse_flags
from pellucid.errors import UserError
from pellucid.model_config import ModelConfig
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig

NOT_FLAGS = {"vocab_size", "rope_scaling", "num_unused_ids"}  # of the model: they follow from the tokenizer, or a file

CONFIGS = ("training", "model", "optimizer", "schedule")


@pytest.fixture(scope="module")
def help_text():
    words = [
        sys.executable,
        "-c",
        "import sys; from pellucid.cli.train_flags import parse_flags; parse_flags(['--help'])",
    ]
    return subprocess.run(words, capture_output=True, encoding="utf-8", check=True).stdout


def test_nothing_given_decides_nothing():
    flags = parse_flags([])
    assert flags == TrainFlags()
    for group in (flags.training, flags.model, flags.optimizer, flags.schedule):
        assert given(group) == {}


def test_flags_become_values_of_their_kinds():
    words = """a.txt b --minutes 2 --preset gpt2 --model.d-model 64 --model.tie-embeddings True
        --model.layer-pattern local --model.layer-pattern global --optimizer.beta1 0.8 --schedule.shape cosine"""
    flags = parse_flags([*words.split(), "--prompt", "- a list"])
    assert flags.sources == ("a.txt", "b")
    assert flags.preset == "gpt2"
    assert given(flags.training) == {"minutes": 2.0, "prompt": "- a list"}
    assert given(flags.model) == {"d_model": 64, "tie_embeddings": True, "layer_pattern": ("local", "global")}
    assert given(flags.optimizer) == {"beta1": 0.8}
    assert given(flags.schedule) == {"shape": "cosine"}


@pytest.mark.parametrize(
    ("config", "prefix"),
    [(TrainingConfig, ""), (ModelConfig, "model."), (OptimizerConfig, "optimizer."), (ScheduleConfig, "schedule.")],
)
def test_every_field_is_a_flag_and_its_docstring_is_the_help(help_text, config, prefix):
    told = re.sub(r"[\s│]+", " ", help_text)
    for field in dataclasses.fields(config):
        if config is ModelConfig and field.name in NOT_FLAGS:
            continue
        assert f"--{prefix}{field.name.replace('_', '-')} " in told
        assert field_help(config)[field.name] in told, field.name


def test_the_help_speaks_of_values_not_of_none(help_text):
    assert "None" not in help_text
    assert "--minutes X" in help_text
    assert "--compile auto|on|off" in help_text
    assert "--model.tie-embeddings True|False" in help_text


def test_what_is_decided_without_the_planner_has_its_default_told(help_text):
    assert re.search(r"checkpoint saved\. \(default: 10\)", re.sub(r"[\s│]+", " ", help_text))


def test_the_help_is_grouped(help_text):
    groups = re.findall(r"^[╭]─ ([\w ]+) ─|^([\w ]+ options)$", help_text, re.MULTILINE)
    names = [first or second for first, second in groups]
    assert names == ["positional arguments", "options", *(f"{config} options" for config in CONFIGS)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--minuts", "3"], "perhaps you meant --minutes"),
        (["--model.d_modl", "3"], "perhaps you meant --model.d-model"),
        (["--steps", "many"], "many"),
        (["--precision", "float16"], "float16"),
        (["--model.num-layers", "1.5"], "1.5"),
    ],
)
def test_a_mistake_is_one_sentence_with_a_way_out(words, said):
    with pytest.raises(UserError) as caught:
        parse_flags(words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_flags_and_their_help_need_no_torch():
    code = """
import sys
from pellucid.cli import train
try:
    train.main(["--help"])
except SystemExit as end:
    assert not end.code
sys.exit("torch" in sys.modules or "rich.live" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_how_files_are_read_and_split_can_be_said():
    flags = parse_flags(["a.csv", "--text-column", "said", "--drop-boilerplate", "--held-out", "0"])
    assert (flags.text_column, flags.drop_boilerplate, flags.held_out) == ("said", True, 0)
