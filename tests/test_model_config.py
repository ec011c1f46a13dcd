import ast
import inspect
import math
from dataclasses import FrozenInstanceError, fields, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import ConfigError
from pellucid.model_config import ModelConfig, RopeScaling

pytestmark = pytest.mark.usefixtures("no_shape_checks")  # a wrong kind shall meet our check, not the tests' own


# --- what is filled in


@given(num_heads=st.integers(1, 8), d_head=st.integers(1, 8))
def test_a_heads_width_is_its_share_of_the_width(num_heads, d_head):
    config = ModelConfig(d_model=num_heads * 2 * d_head, num_heads=num_heads)
    assert (config.d_head, config.num_kv_heads) == (2 * d_head, num_heads)


@pytest.mark.parametrize(
    ("kind", "d_model", "d_ff"),
    [("swiglu", 192, 512), ("geglu", 768, 2048), ("swiglu", 100, 288), ("gelu", 768, 3072), ("relu2", 100, 416)],
)
def test_the_inner_width_is_8_thirds_or_4_times_the_width_up_to_a_multiple_of_32(kind, d_model, d_ff):
    assert ModelConfig(d_model=d_model, num_heads=2, feed_forward=kind).d_ff == d_ff


def test_what_is_given_is_kept():
    config = ModelConfig(d_model=96, num_heads=4, num_kv_heads=2, d_head=32, d_ff=7)
    assert (config.num_kv_heads, config.d_head, config.d_ff) == (2, 32, 7)


def test_a_pattern_from_a_file_becomes_hashable():
    config = ModelConfig(window=4, layer_pattern=["local", "global"])
    assert config.layer_pattern == ("local", "global")
    assert hash(config) == hash(replace(config))


def test_it_cannot_be_changed_and_takes_keywords_only():
    with pytest.raises(FrozenInstanceError):
        ModelConfig().d_model = 3
    with pytest.raises(TypeError):
        ModelConfig(65)


@pytest.mark.parametrize(
    ("choices", "local"),
    [
        ({}, [False] * 5),
        ({"window": 8}, [True] * 5),
        ({"window": 8, "layer_pattern": ("local", "local", "global")}, [True, True, False, True, True]),
        ({"window": 8, "layer_pattern": ("global",)}, [False] * 5),
        ({"layer_pattern": ("global",)}, [False] * 5),
    ],
)
def test_the_pattern_repeats_over_the_layers(choices, local):
    config = ModelConfig(num_layers=5, **choices)
    assert [config.layer_is_local(layer) for layer in range(5)] == local


@pytest.mark.parametrize("kind", ["swiglu", "geglu", "gelu", "silu", "relu2"])
def test_gated_kinds_are_the_ones_with_lu_and_a_gate(kind):
    assert ModelConfig(feed_forward=kind).is_gated == (kind in ("swiglu", "geglu"))


# --- what cannot work, named with its numbers

IMPOSSIBLE = {
    "heads do not divide the width": ({"d_model": 130, "num_heads": 4}, "d_model=130 and num_heads=4"),
    "kv heads do not divide heads": ({"num_heads": 6, "num_kv_heads": 4}, "num_heads=6 and num_kv_heads=4"),
    "more kv heads than heads": ({"num_heads": 2, "num_kv_heads": 4}, "num_heads=2 and num_kv_heads=4"),
    "rope in an odd head": ({"d_head": 7}, "an even d_head for rope.* d_head=7"),
    "nothing but unused ids": ({"vocab_size": 8, "num_unused_ids": 8}, "num_unused_ids=8 and vocab_size=8"),
    "negative unused ids": ({"num_unused_ids": -1}, "num_unused_ids=-1"),
    "all dropped": ({"dropout": 1.0}, "dropout from 0 up to, not including, 1, but got 1.0"),
    "less than nothing dropped": ({"dropout": -0.1}, "but got -0.1"),
    "a tied head with a bias": ({"tie_embeddings": True, "head_bias": True}, "tie_embeddings and head_bias together"),
    "a local layer without a window": ({"layer_pattern": ("local",)}, "a window for the local layers"),
    "an unknown layer": ({"window": 4, "layer_pattern": ("local", "far")}, "global and local, but got 'far'"),
    "an unknown norm": ({"norm": "batch"}, r"norm to be one of rms \| layer \| none \| FILE.py:NAME, but got 'batch'"),
    "an unknown feed-forward": ({"feed_forward": "relu"}, "feed_forward to be one of swiglu .* but got 'relu'"),
    "an unknown placement": ({"norm_placement": "both"}, "norm_placement to be one of pre .* but got 'both'"),
    "unknown positions": ({"positions": "alibi"}, "positions to be one of rope .* but got 'alibi'"),
    "another object for scaling": ({"rope_scaling": {"kind": "linear"}}, "rope_scaling to be a RopeScaling"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_cannot_work_is_refused_with_its_numbers(case):
    choices, message = IMPOSSIBLE[case]
    with pytest.raises(ConfigError, match=message):
        ModelConfig(**choices)


COUNTS = ["vocab_size", "context_length", "d_model", "num_layers", "num_heads"]
COUNTS += ["num_kv_heads", "d_head", "d_ff", "window"]
ABOVE_ZERO = ["norm_epsilon", "rope_theta", "rope_theta_local", "attention_scale", "embedding_scale", "logit_soft_cap"]
FLOATS = [*ABOVE_ZERO, "norm_offset", "dropout"]
SWITCHES = [field.name for field in fields(ModelConfig) if isinstance(field.default, bool)]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, math.nan])
def test_a_count_is_a_whole_number_above_zero(name, value):
    with pytest.raises(ConfigError, match=f"{name} (to be a whole number|above 0), but got {value!r}"):
        ModelConfig(**{name: value})


@pytest.mark.parametrize("name", ABOVE_ZERO)
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_size_is_above_zero(name, value):
    with pytest.raises(ConfigError, match=f"{name} above 0, but got {value}"):
        ModelConfig(**{name: value})


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [math.nan, math.inf, "0.1", [0.1]])
def test_a_number_is_finite(name, value):
    with pytest.raises(ConfigError, match=f"{name} to be a finite number"):
        ModelConfig(**{name: value})


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", ["no", 1, None])
def test_a_switch_is_a_truth_value(name, value):
    with pytest.raises(ConfigError, match=f"{name} to be a bool, but got {value!r}"):
        ModelConfig(**{name: value})


def test_every_field_has_a_docstring_for_the_help():
    for kind in (ModelConfig, RopeScaling):
        body = ast.parse(inspect.getsource(kind)).body[0].body
        for statement, following in pairwise(body):
            if isinstance(statement, ast.AnnAssign):
                assert isinstance(following, ast.Expr), statement.target.id


# --- scaling


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"kind": "yarn", "factor": 2.0}, r"kind to be one of linear \| llama3, but got 'yarn'"),
        ({"kind": "linear", "factor": 0.0}, "factor above 0, but got 0.0"),
        ({"kind": "linear", "factor": math.nan}, "factor to be a finite number, but got nan"),
        ({"kind": "llama3", "factor": 8.0, "high_frequency_factor": 1.0}, "got 1.0 and 1.0"),
        ({"kind": "llama3", "factor": 8.0, "original_context_length": 0}, "original_context_length above 0"),
        ({"kind": "llama3", "factor": 8.0, "low_frequency_factor": 0.0}, "low_frequency_factor above 0"),
    ],
)
def test_a_scaling_that_cannot_work_is_refused(choices, message):
    with pytest.raises(ConfigError, match=message):
        RopeScaling(**choices)
