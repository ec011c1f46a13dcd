from dataclasses import replace

import pytest
from transformers import (
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    Qwen2Config,
    Qwen3Config,
)

from pellucid import presets
from pellucid.convert import to_model_config
from pellucid.model_config import ModelConfig

SIZES = {"vocab_size": 65, "context_length": 32, "d_model": 48, "num_layers": 3, "num_heads": 4}


@pytest.mark.parametrize("preset", [presets.default, presets.gpt2, presets.char_gpt])
def test_sizes_and_every_other_field_may_be_given(preset):
    config = preset(**SIZES, d_head=12, d_ff=100, dropout=0.2, norm_epsilon=1e-3)
    assert {name: getattr(config, name) for name in SIZES} == SIZES
    assert (config.d_ff, config.dropout, config.norm_epsilon) == (100, 0.2, 1e-3)


def test_the_default_is_the_shape_of_qwen3():
    theirs, ours = Qwen3Config(), presets.default()
    assert theirs.hidden_act == "silu"
    assert not theirs.attention_bias
    assert (ours.norm, ours.norm_placement, ours.feed_forward, ours.positions, ours.qk_norm) == (
        "rms",
        "pre",
        "swiglu",
        "rope",
        "head",
    )
    assert not any((ours.qkv_bias, ours.attention_output_bias, ours.feed_forward_bias, ours.head_bias))
    assert ours.norm_epsilon == theirs.rms_norm_eps
    assert ours.logit_soft_cap is ours.window is None
    assert ours.dropout == theirs.attention_dropout == 0


def test_the_defaults_widths_are_multiples_of_32():
    config = presets.default()
    assert config.d_model % 32 == config.d_ff % 32 == config.d_head % 32 == 0


def test_the_presets_name_is_the_plain_config_with_a_norm_of_queries_and_keys():
    assert presets.default(**SIZES) == replace(ModelConfig(**SIZES), qk_norm="head")


def test_gpt2_is_the_released_one():
    theirs, ours = GPT2Config(), presets.gpt2()
    assert (ours.vocab_size, ours.context_length, ours.d_model) == (theirs.vocab_size, theirs.n_positions, 768)
    assert (ours.num_layers, ours.num_heads, ours.d_ff) == (theirs.n_layer, theirs.n_head, 4 * 768)
    assert (ours.norm, ours.norm_epsilon, ours.dropout) == ("layer", theirs.layer_norm_epsilon, theirs.attn_pdrop)
    assert (theirs.activation_function, ours.feed_forward, ours.gelu) == ("gelu_new", "gelu", "tanh")
    assert ours.tie_embeddings == theirs.tie_word_embeddings


def test_char_gpt_has_the_lessons_defaults():
    config = presets.char_gpt(65)
    assert (config.d_model, config.d_head, config.num_heads, config.num_layers) == (64, 16, 4, 2)
    assert (config.context_length, config.dropout, config.d_ff) == (64, 0.4, 256)
    assert config.head_bias
    assert not config.qkv_bias
    assert config.gelu == "exact"


def test_char_gpt_has_as_many_heads_as_fit_the_width():
    assert presets.char_gpt(65, d_model=128).num_heads == 8
    assert presets.char_gpt(65, d_model=40, d_head=16).num_heads == 2


@pytest.mark.parametrize(
    ("preset", "kind"),
    [
        (presets.llama, LlamaConfig),
        (presets.mistral, MistralConfig),
        (presets.qwen2, Qwen2Config),
        (presets.olmo2, Olmo2Config),
        (presets.gemma3, Gemma3TextConfig),
    ],
)
def test_other_families_are_theirs_at_the_same_sizes(preset, kind):
    theirs = to_model_config(kind().to_dict())
    sizes = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "num_kv_heads", "d_head", "d_ff")
    chosen = {name: getattr(theirs, name) for name in (*sizes, "window", "norm_epsilon", "attention_scale")}
    assert preset(**chosen) == theirs
