from pathlib import Path

import pytest

from pellucid.cli.train_flags import recipe_fields
from pellucid.errors import ConfigError
from pellucid.run_config import in_variant, looks_like_recipe, over, read_recipe

WHOLE = """
sources = ["book.txt"]
tokenizer = "char"
seeds = [0, 1]

[training]
steps = 300
batch-size = 8

[model]
num_layers = 2

[variants.baseline]
[variants.no-norm]
model.norm = "none"
optimizer.matrix_learning_rate = 1
"""


def read(folder, text):
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return read_recipe(path, recipe_fields())


def test_a_recipe_is_one_flat_mapping_for_all_and_one_for_each_variant(tmp_path):
    recipe = read(tmp_path, WHOLE)
    assert recipe.settings == {
        "sources": (str(tmp_path / "book.txt"),),
        "tokenizer": "char",
        "training.steps": 300,
        "training.batch_size": 8,
        "model.num_layers": 2,
    }
    assert recipe.variants == {"baseline": {}, "no-norm": {"model.norm": "none", "optimizer.matrix_learning_rate": 1.0}}


def test_its_runs_come_seed_by_seed_each_with_the_variant_over_what_all_have(tmp_path):
    runs = read(tmp_path, WHOLE).runs({})
    assert [run.name for run in runs] == ["baseline-seed-0", "no-norm-seed-0", "baseline-seed-1", "no-norm-seed-1"]
    assert runs[3].settings["model.norm"] == "none"
    assert runs[3].settings["model.num_layers"] == 2
    assert runs[3].settings["training.seed"] == 1
    assert "model.norm" not in runs[2].settings


def test_flags_lie_over_the_recipe_and_a_seed_stands_for_all_of_them(tmp_path):
    runs = read(tmp_path, WHOLE).runs({"training.seed": 7, "model.num_layers": 3, "training.steps": 5})
    assert [run.name for run in runs] == ["baseline-seed-7", "no-norm-seed-7"]
    assert {run.settings["model.num_layers"] for run in runs} == {3}
    assert {run.settings["training.steps"] for run in runs} == {5}


def test_a_flag_that_would_undo_a_variant_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"model.norm, which is what variant no-norm is about"):
        read(tmp_path, WHOLE).runs({"model.norm": "rms"})


def test_runs_to_be_compared_are_counted_in_steps(tmp_path):
    with pytest.raises(ConfigError, match=r"Expected steps in .training."):
        read(tmp_path, WHOLE).runs({"training.minutes": 3.0})
    with pytest.raises(ConfigError, match=r"Expected steps in .training."):
        read(tmp_path, "seeds = [1]").runs({})


def test_without_variants_and_seeds_it_is_one_run(tmp_path):
    assert not read(tmp_path, "[model]\nnum_layers = 1").is_series
    assert read(tmp_path, "seeds = [1]").is_series


def test_minutes_replace_steps_and_steps_minutes():
    assert over({"training.minutes": 1.0}, {"training.steps": 2}) == {"training.steps": 2}
    assert over({"training.steps": 2}, {"preset": "gpt2"}) == {"training.steps": 2, "preset": "gpt2"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[model]\nnum_layer = 1",
            r"settings that exist in \S+recipe.toml, but got model.num_layer: perhaps you meant model",
        ),
        ("steps = 3\n[model]", "recipe.toml, but got steps: perhaps you meant training.steps"),
        ("[modle]\nnorm = 'rms'", "got modle: perhaps you meant"),
        (
            "[model]\nnorm = 'rmss'",
            "model.norm to be rms or layer or none or FILE.py:NAME, but got 'rmss': perhaps you meant rms",
        ),
        ("[model]\nnum_layers = 'two'", "model.num_layers to be a whole number, but got 'two'"),
        ("[model]\nnum_layers = true", "model.num_layers to be a whole number, but got True"),
        ("[variants.x]\nmodel.dropout = 'much'", "variants.x.model.dropout to be a number, but got 'much'"),
        (
            "[variants.x]\ntokenizer = 'bpe'",
            "the same text and tokens for every variant, but got tokenizer in variant x",
        ),
        ("[variants.x]\ntraining.seed = 1", "the same seeds and steps for every variant"),
        ("[variants.x]\ntraining.steps = 1", "the same seeds and steps for every variant"),
        ("[variants.'../x']", "names a folder, but got '../x'"),
        ("[variants.a]\n[variants.A]", "differ in more than case"),
        ("[variants.x-0.5]", r'but got variants.x-0.5: put a name that has a dot into quotes: \[variants."x-0.5"\]'),
        ("variants = 3", "variants to be tables"),
        ("model = 3", "recipe.toml, but got model = 3"),
        ("seeds = [1, 1]", "different whole numbers"),
        ("seeds = [true]", "different whole numbers"),
        ("seeds = 3", "different whole numbers"),
        ("seeds = [1]\n[training]\nseed = 2", "seeds or training.seed, but got both"),
        ("sources = 'book.txt'", "sources to be a list of text"),
        ("[model\nnorm = 1", "TOML in .*recipe.toml, but got a mistake: .*line 1"),
        ("[model]\nvocab_size = 3", "recipe.toml, but got model.vocab_size"),
    ],
)
def test_a_mistake_is_a_sentence_with_its_place(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "is_recipe"),
    [
        (WHOLE, True),
        ("seeds = [1]", True),
        ("[model\nnorm = 1", True),
        ("[model card]\nnorm = ", False),
        ("[model]\nnorm = ", True),
        ("[project]\nname = 'x'", False),
        ("no toml at all", False),
        ("", False),
    ],
)
def test_a_toml_file_is_a_recipe_by_its_tables(tmp_path, text, is_recipe):
    path = tmp_path / "some.toml"
    path.write_text(text, encoding="utf-8")
    assert looks_like_recipe(path) == is_recipe


def test_other_files_are_no_recipes(tmp_path):
    text, binary = tmp_path / "recipe.txt", tmp_path / "binary.toml"
    text.write_text(WHOLE, encoding="utf-8")
    binary.write_bytes(b"\xff[model]")
    assert not any(map(looks_like_recipe, (text, binary, tmp_path, Path("nowhere.toml"))))


def test_paths_start_from_the_recipes_folder(tmp_path):
    settings = read(tmp_path, 'sources = ["a", "/b"]\ntokenizer = "t/tokenizer.json"').settings
    assert settings["sources"] == (str(tmp_path / "a"), "/b")
    assert settings["tokenizer"] == str(tmp_path / "t/tokenizer.json")


def test_a_part_of_ones_own_is_looked_for_beside_the_recipe(tmp_path):
    recipe = read(tmp_path, '[variants.mine]\nmodel.feed_forward = "mine.py:ReGLU"')
    assert recipe.variants == {"mine": {"model.feed_forward": f"{tmp_path}/mine.py:ReGLU"}}


def test_a_mistake_in_a_variant_names_it(tmp_path):
    run = read(tmp_path, WHOLE).runs({})[1]
    error = in_variant(ConfigError("x", came="y", remedy="z"), run, Path("r.toml"))
    assert isinstance(error, ConfigError)
    assert str(error) == "Expected x, but got y, in variant no-norm of r.toml: z."
