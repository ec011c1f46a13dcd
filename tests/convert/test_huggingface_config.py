"""What config.json says is read, known to be without meaning, or refused by name."""

import pytest
import transformers

from pellucid.convert.families import FAMILIES
from pellucid.convert.huggingface_config import family_of, to_model_config
from pellucid.errors import ModelFileError
from pellucid.model_config import RopeScaling

SIZES = {
    "vocab_size": 97,
    "max_position_embeddings": 640,
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "intermediate_size": 80,
}
LLAMA = {"model_type": "llama", **SIZES}
GEMMA = {"model_type": "gemma3_text", **SIZES, "head_dim": 16}
QWEN = {"model_type": "qwen2", **SIZES}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}


@pytest.mark.parametrize(
    "kind",
    [
        transformers.LlamaConfig,
        transformers.MistralConfig,
        transformers.Qwen2Config,
        transformers.Qwen3Config,
        transformers.Olmo2Config,
        transformers.Gemma3TextConfig,
        transformers.GPT2Config,
    ],
)
def test_every_field_that_transformers_writes_is_known(kind):
    described = kind().to_dict()
    config = to_model_config(described)
    assert config.vocab_size == described["vocab_size"]
    assert family_of(described).model_type == kind.model_type


def test_every_family_has_a_class_that_transformers_can_make():
    assert all(hasattr(transformers, family.architecture) for family in FAMILIES.values())


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({**LLAMA, "model_type": "mamba"}, "mamba"),
        (SIZES, "model_type"),
        ({**LLAMA, "quantization_config": {"bits": 4}}, "quantization_config"),
        ({**LLAMA, "auto_map": {"AutoModelForCausalLM": "mine.Model"}}, "auto_map"),
        ({**LLAMA, "num_experts": 8}, "num_experts=8"),
        ({**LLAMA, "use_rope": False}, "use_rope=False"),
        ({**LLAMA, "hidden_act": "relu"}, "hidden_act='relu'"),
        ({**LLAMA, "hidden_act": ["silu"]}, "hidden_act"),
        ({**LLAMA, "partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
        ({**LLAMA, "sliding_window": 9}, "sliding_window=9"),
        ({**LLAMA, "layer_types": ["sliding_attention"] * 3}, "layer_types='sliding_attention'"),
        ({**LLAMA, "rope_scaling": {"type": "yarn", "factor": 4.0}}, r"rope_scaling\.rope_type='yarn'"),
        ({**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 4.0}}, "'dynamic'"),
        ({**LLAMA, "rope_scaling": {"rope_type": "linear", "type": "llama3", "factor": 4.0}}, "linear and llama3"),
        ({**LLAMA, "rope_scaling": {"factor": 4.0}}, r"no rope_scaling\.rope_type"),
        ({**LLAMA, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, r"no rope_scaling\.low_freq_factor"),
        ({**LLAMA, "rope_scaling": {"rope_type": "default", "mrope_section": [1]}}, "mrope_section"),
        ({**LLAMA, "rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ({**LLAMA, "rope_parameters": {"rope_theta": 1e6}, "rope_theta": 1e4}, "rope_theta and rope_param"),
        ({**LLAMA, "rope_theta": "10000"}, "rope_theta='10000'"),
        ({**LLAMA, "rope_theta": 0}, "rope_theta=0"),
        ({**LLAMA, "rope_parameters": 3}, "rope_parameters=3"),
        ({**LLAMA, "hidden_size": "96"}, "hidden_size='96'"),
        ({**LLAMA, "hidden_size": 96.5}, "96.5"),
        ({**LLAMA, "num_hidden_layers": None}, "no num_hidden_layers"),
        ({**LLAMA, "tie_word_embeddings": "yes"}, "yes"),
        ({**LLAMA, "num_key_value_heads": 3}, "num_kv_heads=3"),
        ({**QWEN, "layer_types": ["full_attention"] * 2}, "layer_types"),
        ({**QWEN, "layer_types": ["linear_attention"] * 3}, "linear_attention"),
        ({**QWEN, "layer_types": [["full_attention"]] * 3}, "layer_types"),
        ({**GEMMA, "attn_logit_softcapping": 50.0}, "attn_logit_softcapping"),
        ({**GEMMA, "use_bidirectional_attention": True}, "use_bidirectional_attention"),
        ({**GEMMA, "rope_parameters": {"rope_type": "default"}}, "rope_parameters"),
        (
            {**GEMMA, "rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2.0}}},
            "local layers without scaling",
        ),
        ({**GEMMA, "rope_parameters": {"sliding_attention": 3}}, "sliding_attention"),
        ({**GEMMA, "rope_parameters": {"chunked_attention": {}, "full_attention": {}}}, "chunked_attention"),
        ({**GEMMA, "query_pre_attn_scalar": -1}, "query_pre_attn_scalar"),
    ],
)
def test_what_cannot_be_had_here_is_refused_by_name(described, words):
    with pytest.raises(ModelFileError, match=words):
        to_model_config(described)


@pytest.mark.parametrize(
    "fields",
    [
        {"rope_theta": 500_000.0},
        {"rope_parameters": {"rope_theta": 500_000.0}},
        {"rope_theta": 500_000, "rope_parameters": {"rope_theta": 500_000.0, "rope_type": "default"}},
        {"rope_theta": 500_000, "rope_scaling": None},
    ],
)
def test_theta_in_each_spelling(fields):
    assert to_model_config({**LLAMA, **fields}).rope_theta == 500_000.0


@pytest.mark.parametrize(
    "fields",
    [
        {"rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {"rope_scaling": {"type": "llama3", **LLAMA3}},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, **LLAMA3}},
        {"rope_parameters": {"rope_theta": 1e4}, "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {"rope_parameters": {"rope_type": "llama3", **LLAMA3}, "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
    ],
)
def test_scaling_in_each_spelling(fields):
    scaling = RopeScaling(kind="llama3", factor=8.0, original_context_length=128)
    assert to_model_config({**LLAMA, **fields}).rope_scaling == scaling


def test_windows_of_mistral_are_there_unless_null():
    mistral = {"model_type": "mistral", **SIZES}
    assert to_model_config(mistral).window == 4096
    assert to_model_config({**mistral, "sliding_window": None}).window is None


def test_windows_of_qwen_are_there_if_used():
    windows = {"sliding_window": 9, "max_window_layers": 2}
    assert to_model_config({**QWEN, **windows}).window is None
    config = to_model_config({**QWEN, **windows, "use_sliding_window": True})
    assert [config.layer_is_local(layer) for layer in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    "fields",
    [
        {"sliding_window_pattern": 2},
        {"_sliding_window_pattern": 2},
        {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    ],
)
def test_windows_of_gemma_in_each_spelling(fields):
    config = to_model_config({**GEMMA, **fields, "rope_local_base_freq": 5000.0, "rope_theta": 2e6})
    assert (config.window, config.layer_pattern) == (4096, ("local", "global"))
    assert (config.rope_theta, config.rope_theta_local) == (2e6, 5000.0)


@pytest.mark.parametrize("model_type", FAMILIES)
@pytest.mark.parametrize("value", [True, 1, 0.5, "some", [1], {"a": 1}])
def test_a_field_that_nobody_knows_is_refused_in_every_family_unless_it_says_nothing(model_type, value):
    family = FAMILIES[model_type]
    described = {"model_type": model_type, **dict.fromkeys(family.sizes.values(), 8), "head_dim": 8}
    described = (
        described if "head_dim" in {field.theirs for field in family.fields} else {**described, "head_dim": None}
    )
    described |= {"num_key_value_heads": 8} if model_type != "gpt2" else {}
    to_model_config({**described, "invented_in_2027": None})
    with pytest.raises(ModelFileError, match="invented_in_2027"):
        to_model_config({**described, "invented_in_2027": value})


@pytest.mark.parametrize(
    "model_type", ["llama4", "llama4_text", "qwen3_moe", "gemma2", "gemma3n", "mamba", "deepseek_v3"]
)
def test_a_family_that_is_near_one_of_ours_is_refused_by_its_name(model_type):
    with pytest.raises(ModelFileError, match=f"'{model_type}'"):
        to_model_config({**LLAMA, "model_type": model_type})


def test_an_activation_that_is_told_to_be_null_is_refused_by_name():
    fields = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    fields |= {"intermediate_size": 96, "vocab_size": 90, "max_position_embeddings": 64, "head_dim": 16}
    assert to_model_config(fields).feed_forward == "swiglu"
    with pytest.raises(ModelFileError, match="hidden_act"):
        to_model_config(fields | {"hidden_act": None})
