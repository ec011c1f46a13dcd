import dataclasses
import subprocess
import sys

import jaxtyping
import pytest

from pellucid.errors import ConfigError
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig


@pytest.fixture
def unchecked():
    """Outside tests nobody checks annotations before the configuration does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("matrix_learning_rate", -0.1),
        ("head_learning_rate", float("nan")),
        ("embedding_learning_rate", float("inf")),
        ("matrix_weight_decay", -1.0),
        ("momentum", 1.0),
        ("beta1", -0.1),
        ("beta2", 1.0),
        ("adamw_epsilon", 0.0),
        ("newton_schulz_steps", 0),
        ("max_gradient_norm", -1.0),
        ("matrix_algorithm", "sgd"),
        ("update_scale", "loud"),
        ("newton_schulz_precision", "float8"),
        ("attention_slices", "thirds"),
    ],
)
def test_an_impossible_optimizer_setting_is_refused_by_name(field, value):
    with pytest.raises(ConfigError, match=field):
        OptimizerConfig(**{field: value})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shape", "triangle"),
        ("warm_up_steps", -1),
        ("decay_fraction", 1.5),
        ("final_fraction", -0.1),
        ("final_fraction", float("nan")),
    ],
)
def test_an_impossible_schedule_setting_is_refused_by_name(field, value):
    with pytest.raises(ConfigError, match=field):
        ScheduleConfig(**{field: value})


@pytest.mark.parametrize("config", [OptimizerConfig, ScheduleConfig])
def test_settings_are_frozen_and_keyword_only(config):
    with pytest.raises(dataclasses.FrozenInstanceError):
        config().momentum = 0.5
    with pytest.raises(TypeError):
        config(0.1)


def test_the_module_needs_no_torch():
    code = "import sys, pellucid.training_config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("field", ["health_interval", "keep", "seed"])
def test_a_count_below_nothing_is_refused_by_name(field):
    with pytest.raises(ConfigError, match=field):
        TrainingConfig(**{field: -1})
