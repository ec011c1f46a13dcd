from dataclasses import replace

import pytest

from pellucid import presets
from pellucid.convert.gguf_description import describe_gguf
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig, RopeScaling
from tests.convert.outgoing_models import SHAPES

SQUARE = {"olmo2", "qwen2"}


@pytest.mark.parametrize("shape", ["llama", "llama with biases", "llama 3.1", "qwen2", "qwen3", "olmo2", "gpt2"])
def test_every_family_is_found(shape):
    config = replace(SHAPES[shape], d_head=24) if shape in SQUARE else SHAPES[shape]
    assert describe_gguf(config).family.architecture == shape.split()[0]


def test_gemma_s_pattern_is_told_unless_it_is_the_one_everybody_knows():
    usual = describe_gguf(presets.gemma3(num_layers=7)).entries
    assert "gemma3.attention.sliding_window_pattern" not in usual
    assert usual["gemma3.attention.sliding_window"] == 512
    assert usual["gemma3.rope.freq_base_swa"] == 10_000.0
    own = describe_gguf(presets.gemma3(num_layers=7, layer_pattern=("local", "global"))).entries
    assert own["gemma3.attention.sliding_window_pattern"] == 2
    odd = describe_gguf(presets.gemma3(num_layers=3, layer_pattern=("global", "local", "local"))).entries
    assert odd["gemma3.attention.sliding_window_pattern"] == [False, True, True]


def test_llama_3_s_scaling_is_factors_and_linear_is_a_factor():
    described = describe_gguf(SHAPES["llama 3.1"])
    assert described.rope_factors.min() == 1.0
    assert described.rope_factors.max() == 8.0
    linear = describe_gguf(presets.default(rope_scaling=RopeScaling(kind="linear", factor=4.0)))
    assert linear.entries["qwen3.rope.scaling.factor"] == 4.0
    assert linear.rope_factors is None


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (presets.mistral(), r"window=4096 \(Llama, the nearest, has none\)"),
        (presets.default(logit_soft_cap=30.0), r"logit_soft_cap=30.0 \(Qwen3, the nearest, has none\)"),
        (presets.default(feed_forward="relu2"), r"feed_forward=relu2 \(Qwen3"),
        (presets.default(positions="none"), "positions=none"),
        (presets.gpt2(feed_forward="relu2"), "feed_forward=relu2"),
        (presets.char_gpt(65), "head_bias=yes"),
        (presets.olmo2(d_head=64), "d_head=64"),
        (presets.gemma3(attention_scale=0.1), "attention_scale=0.1"),
        (presets.default(rope_scaling=RopeScaling(kind="llama3", factor=8.0)), "rope_scaling=llama3"),
        (presets.llama(rope_scaling=RopeScaling(kind="llama3", factor=8.0, low_frequency_factor=2.0)), "rope_scaling"),
        (ModelConfig(attention="mine.py:Mine@" + "0" * 64), r"attention of your own \(mine.py:Mine\)"),
    ],
)
def test_what_llama_cpp_has_not_is_named(config, said):
    with pytest.raises(ModelFileError, match=said):
        describe_gguf(config)
