import json

import pytest

from pellucid.errors import ConfigError
from pellucid.nn import TransformerLM
from pellucid.text import least_size
from pellucid.train.recipe import PRESETS, choose_recipe, with_decay
from pellucid.training_config import OptimizerConfig

SIZES = [200, 20_000, 99_999, 100_001, 500_000, 1_100_000, 50_000_000, 1_000_000_000]
MINUTES = [0.1, 1.0, 5.0, 60.0]


@pytest.mark.parametrize("characters", SIZES)
@pytest.mark.parametrize("minutes", MINUTES)
def test_what_is_trained_by_default_can_be_exported_anywhere(characters, minutes):
    """The shape of Qwen3, in widths that every quantisation can cut into blocks of 32."""
    config = choose_recipe(characters, minutes).model_config(1024)
    assert (config.norm, config.norm_placement, config.qk_norm, config.positions) == ("rms", "pre", "head", "rope")
    assert (config.feed_forward, config.logit_soft_cap, config.rope_scaling, config.window) == (
        "swiglu",
        None,
        None,
        None,
    )
    biases = (config.qkv_bias, config.attention_output_bias, config.feed_forward_bias, config.head_bias)
    assert not any(biases)
    assert (config.embedding_scale, config.attention_scale, config.norm_offset) == (1.0, None, 0.0)
    assert config.d_model % 32 == config.d_ff % 32 == config.d_head % 2 == 0


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("characters", [SIZES[1], SIZES[4], SIZES[5]])
def test_every_preset_makes_a_model_for_every_size_of_text(preset, characters):
    recipe = choose_recipe(characters, 5.0, preset)
    assert TransformerLM(recipe.model_config(300)).num_parameters() > 0


@pytest.mark.parametrize("preset", PRESETS)
def test_run_json_can_hold_a_recipe(preset):
    recipe = choose_recipe(1_000_000, 5.0, preset)
    assert json.loads(json.dumps(recipe.as_json()))["preset"] == preset


@pytest.mark.parametrize(("characters", "minutes", "least"), [(200_000, 5, 512), (10**6, 5, 1024)])
def test_the_vocabulary_is_left_to_the_text_above_the_least_for_its_size(characters, minutes, least):
    recipe = choose_recipe(characters, minutes)
    assert (recipe.tokenizer, recipe.vocab_size, recipe.least_vocab_size) == (None, None, least)
    assert least_size(characters) == least


def test_a_text_too_small_to_teach_pairs_is_read_in_characters_with_dropout_and_not_too_often():
    recipe = choose_recipe(20_000, 5.0)
    assert recipe.tokenizer == "characters"
    assert recipe.model["dropout"] > 0
    assert recipe.most_readings is not None


def test_the_character_gpt_reads_characters():
    assert choose_recipe(1_000_000, 5.0, "char-gpt").tokenizer == "characters"


def test_sizes_that_make_no_model_are_refused():
    recipe = choose_recipe(1_000_000, 5.0)
    with pytest.raises(ConfigError, match="num_heads"):
        type(recipe)(model={"d_model": 100, "num_heads": 3}).model_config(100)


def test_the_more_often_a_text_is_read_the_more_its_weights_decay():
    decays = [with_decay(OptimizerConfig(), readings).matrix_weight_decay for readings in (0.1, 1.0, 4.0, 1000.0)]
    assert decays == sorted(decays)
    assert 0 < decays[0] < 0.01
    assert decays[-1] == with_decay(OptimizerConfig(), 1e9).matrix_weight_decay


@pytest.mark.parametrize("name", ["matrix_weight_decay", "embedding_weight_decay"])
def test_a_decay_that_was_asked_for_stays(name):
    assert getattr(with_decay(OptimizerConfig(**{name: 0.07}), 10.0), name) == 0.07


@pytest.mark.parametrize("characters", [20_000, 200_000])
def test_a_text_of_thousands_of_letters_is_read_less_often(characters):
    seldom, often = choose_recipe(characters, 5.0, alphabet=3000), choose_recipe(characters, 5.0, alphabet=80)
    assert seldom.most_readings < often.most_readings
    assert choose_recipe(10**6, 5.0, alphabet=3000).most_readings is None
