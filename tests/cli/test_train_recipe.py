from pathlib import Path

import pytest

from pellucid.cli.train_flags import parse_flags
from pellucid.cli.train_recipe import composed, recipe_in


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(text, name="recipe.toml"):
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_the_first_source_may_be_a_recipe_and_flags_lie_over_it():
    words = [written('preset = "gpt2"\n[training]\nsteps = 9\n[model]\nnum_layers = 2'), "--minutes", "1"]
    flags = parse_flags([*words, "--model.d-model", "64", "--out", "here"])
    recipe = recipe_in(flags)
    assert recipe is not None
    whole = composed(recipe, flags)
    assert (whole.preset, whole.model.num_layers, whole.model.d_model, whole.out) == ("gpt2", 2, 64, "here")
    assert (whole.training.minutes, whole.training.steps, whole.sources) == (1.0, None, ())


def test_sources_after_it_take_the_place_of_its_own():
    flags = parse_flags([written('sources = ["a.txt"]\n[model]'), "b.txt"])
    recipe = recipe_in(flags)
    assert recipe is not None
    assert composed(recipe, flags).sources == ("b.txt",)
    assert composed(recipe, parse_flags(["recipe.toml"])).sources == ("a.txt",)


def test_another_toml_is_a_text_and_that_is_said(capsys):
    assert recipe_in(parse_flags([written("[project]\nname = 'x'")])) is None
    assert "recipe.toml is read as text: a recipe has training, model" in capsys.readouterr().out


def test_a_recipe_that_does_not_come_first_is_a_text(capsys):
    assert recipe_in(parse_flags([written("words", "a.txt"), written("[model]")])) is None
    assert capsys.readouterr().out == ""
