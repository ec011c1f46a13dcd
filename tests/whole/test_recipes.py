"""The recipes that are shipped: each can be read, and makes models that are what it says."""

from pathlib import Path

import pytest

from pellucid.cli import main
from pellucid.cli.train_flags import from_settings, given, recipe_fields
from pellucid.compare import compare
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.run_config import looks_like_recipe, read_recipe
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig
from tests.train.small_run import small_text

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


def parameters(settings):
    return TransformerLM(ModelConfig(vocab_size=512, **given(from_settings(settings).model))).num_parameters()


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_it_can_be_read_and_every_run_can_be_made(path):
    assert looks_like_recipe(path)
    runs = read_recipe(path, recipe_fields()).runs({})
    assert len(runs) >= 6
    for run in runs:
        flags = from_settings(run.settings)
        TrainingConfig(**given(flags.training))
        OptimizerConfig(**given(flags.optimizer))
        ScheduleConfig(**given(flags.schedule))
        ModelConfig(**given(flags.model))


def test_the_ablations_are_those_of_the_courses_and_cost_the_same():
    path = next(path for path in RECIPES if path.stem == "ablations")
    recipe = read_recipe(path, recipe_fields())
    assert list(recipe.variants) == ["baseline", "no-norm", "post-norm", "no-positions", "silu"]
    sizes = [parameters(run.settings) for run in recipe.runs({"training.seed": 0})]
    assert max(sizes) / min(sizes) < 1.01


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_it_runs_on_any_text(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text(small_text(20_000), encoding="utf-8")
    small = "--steps 3 --seed 0 --tokenizer char --evaluations 1 --out all"
    assert main.run(["train", str(path), "words.txt", *small.split()]) == 2  # a vocabulary of characters has no size
    recipe = Path("recipe.toml")
    recipe.write_text(path.read_text(encoding="utf-8").replace("vocab_size = 512\n", ""), encoding="utf-8")
    assert main.run(["train", "recipe.toml", "words.txt", *small.split()]) == 0
    assert compare(["all"]).same_batches
