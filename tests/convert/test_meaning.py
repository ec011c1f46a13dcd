from dataclasses import replace

import pytest

from pellucid import presets
from pellucid.convert.meaning import differences, meaning, shortest_pattern
from pellucid.model_config import ModelConfig, RopeScaling


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (presets.default(), {"gelu": "tanh"}),
        (presets.default(), {"norm_bias": False}),
        (presets.default(), {"dropout": 0.5}),
        (presets.default(), {"num_unused_ids": 7}),
        (presets.default(), {"attention_scale": 32**-0.5}),
        (presets.default(), {"rope_theta_local": 5.0}),
        (presets.default(), {"window": 9, "layer_pattern": ("global",)}),
        (presets.mistral(), {"layer_pattern": ("local",)}),
        (presets.gpt2(), {"rope_theta": 7.0, "rope_scaling": RopeScaling(kind="linear", factor=2.0)}),
    ],
)
def test_a_field_that_changes_nothing_does_not_count(config, fields):
    assert not differences(config, replace(config, **fields))


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (presets.gpt2(), {"gelu": "exact"}),
        (presets.gpt2(), {"norm_bias": False}),
        (presets.default(), {"attention_scale": 0.5}),
        (presets.default(), {"rope_theta": 10001.0}),
        (presets.gemma3(), {"rope_theta_local": 5.0}),
        (presets.gemma3(), {"window": 511}),
        (presets.gemma3(), {"layer_pattern": ("local", "global")}),
        (presets.default(), {"rope_scaling": RopeScaling(kind="linear", factor=2.0)}),
    ],
)
def test_a_field_that_changes_something_does(config, fields):
    assert list(differences(config, replace(config, **fields))) == list(fields)


def test_numbers_are_as_exact_as_files_hold_them():
    assert not differences(ModelConfig(embedding_scale=96**0.5), ModelConfig(embedding_scale=9.797959))


def test_meaning_is_its_own_meaning():
    config = meaning(presets.gemma3(num_layers=8))
    assert meaning(config) == config


def test_a_pattern_that_does_not_repeat_is_told_in_full():
    assert shortest_pattern([True, False, False]) == ("local", "global", "global")
    assert shortest_pattern([True, True]) == shortest_pattern([False]) == ()
