"""Random models of other people's code, their weights carried across by hand, give our logits (M7, M9, M16, C6)."""

import pytest
import torch
import transformers

from pellucid import presets
from pellucid.model_config import ModelConfig, RopeScaling
from pellucid.nn import TransformerLM

LENGTH = 601
GEOMETRIES = [(8, 2), (6, 3), (4, 1), (8, 8)]
SIZES = {"vocab_size": 97, "d_model": 96, "num_layers": 2, "context_length": 640, "d_ff": 80}
THEIR_SIZES = {
    "vocab_size": 97,
    "hidden_size": 96,
    "num_hidden_layers": 2,
    "max_position_embeddings": 640,
    "intermediate_size": 80,
    "attn_implementation": "eager",
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
# Theirs takes angles in float32, which at position 600 are 4e-5 off; ours come from float64.
NEAR = 2e-4
geometries = pytest.mark.parametrize(("num_heads", "num_kv_heads"), GEOMETRIES)


def _randomised(model, norm_mean=1.0):
    """Weights of deviation 0.15, norms far from 1, biases far from 0; evaluated, without dropout."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = "norm" in name or ".ln_" in name
            if parameter.ndim == 1:
                parameter.normal_(norm_mean if is_norm and name.endswith("weight") else 0.0, 0.3)
            else:
                parameter.normal_(0.0, 0.15)
    return model.eval()


def _llama_like(theirs, norms: dict[str, str]) -> dict[str, torch.Tensor]:
    """Their weights under our names, for every family that spells its layers as Llama does."""
    state = theirs.state_dict()
    ours = {
        "token_embedding.weight": state["model.embed_tokens.weight"],
        "final_norm.weight": state["model.norm.weight"],
        "lm_head.weight": state["lm_head.weight"],
    }
    for i in range(theirs.config.num_hidden_layers):
        there, here = f"model.layers.{i}.", f"blocks.{i}."
        for kind in ("weight", "bias"):
            parts = [state.get(f"{there}self_attn.{part}_proj.{kind}") for part in "qkv"]
            if parts[0] is not None:
                ours[f"{here}attention.query_key_value.{kind}"] = torch.cat(parts)
        ours[f"{here}attention.output.weight"] = state[f"{there}self_attn.o_proj.weight"]
        for part in ("gate", "up", "down"):
            ours[f"{here}feed_forward.{part}.weight"] = state[f"{there}mlp.{part}_proj.weight"]
        for their_norm, our_norm in norms.items():
            ours[f"{here}{our_norm}.weight"] = state[f"{there}{their_norm}.weight"]
    return ours


PRE = {"input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm"}
OF_HEADS = {"self_attn.q_norm": "attention.query_norm", "self_attn.k_norm": "attention.key_norm"}
OUTPUT = {
    "post_attention_layernorm": "attention_output_norm",
    "post_feedforward_layernorm": "feed_forward_output_norm",
}
SANDWICH = OUTPUT | {"input_layernorm": "attention_norm", "pre_feedforward_layernorm": "feed_forward_norm"}


@torch.no_grad()
def _assert_equal(theirs, config: ModelConfig, weights: dict[str, torch.Tensor], near: float = NEAR):
    model = TransformerLM(config).eval()
    model.load_state_dict(weights)
    ids = torch.randint(97, (1, LENGTH))
    expected = theirs(ids).logits
    for fused in (False, True):
        logits = model.use_fused_attention(fused)(ids)
        for position in (0, 1, 10, 100, 256, 257, 500, LENGTH - 1):
            error = (logits - expected)[:, position].abs().max() / expected.std()
            assert error < near, f"position {position}: off by {error:.1e} of the logits' deviation"
        assert (logits - expected).abs().max() < near * expected.std()


@geometries
@pytest.mark.parametrize("d_head", [None, 32])
def test_llama(num_heads, num_kv_heads, d_head):
    heads = {
        "num_attention_heads": num_heads,
        "num_key_value_heads": num_kv_heads,
        "head_dim": d_head or 96 // num_heads,
    }
    config = transformers.LlamaConfig(**THEIR_SIZES, **heads, rms_norm_eps=1e-5, attention_bias=False)
    theirs = _randomised(transformers.LlamaForCausalLM(config))
    ours = ModelConfig(**SIZES, num_heads=num_heads, num_kv_heads=num_kv_heads, d_head=d_head, norm_epsilon=1e-5)
    _assert_equal(theirs, ours, _llama_like(theirs, PRE))


LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}
SCALINGS = {
    "none": (None, {"rope_type": "default"}),
    "linear": (RopeScaling(kind="linear", factor=4.0), {"rope_type": "linear", "factor": 4.0}),
    "llama3": (
        RopeScaling(kind="llama3", factor=8.0, original_context_length=128),
        {"rope_type": "llama3", "factor": 8.0, **LLAMA3},
    ),
}


@pytest.mark.parametrize(("name", "theta"), [("none", 500_000.0), ("linear", 10_000.0), ("llama3", 500_000.0)])
def test_llama_reaching_further(name, theta):
    scaling, their_scaling = SCALINGS[name]
    config = transformers.LlamaConfig(
        **THEIR_SIZES,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_theta": theta, **their_scaling},
    )
    theirs = _randomised(transformers.LlamaForCausalLM(config))
    ours = ModelConfig(**SIZES, num_heads=4, num_kv_heads=2, rope_theta=theta, rope_scaling=scaling)
    _assert_equal(theirs, ours, _llama_like(theirs, PRE))


@pytest.mark.parametrize(
    ("num_heads", "num_kv_heads", "tied"), [(8, 2, False), (6, 3, True), (4, 1, False), (8, 8, True)]
)
def test_qwen3_is_the_default_preset(num_heads, num_kv_heads, tied):
    config = transformers.Qwen3Config(
        **THEIR_SIZES,
        num_attention_heads=num_heads,
        num_key_value_heads=num_kv_heads,
        head_dim=32,
        rms_norm_eps=1e-6,
        tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )
    theirs = _randomised(transformers.Qwen3ForCausalLM(config))
    ours = presets.default(**SIZES, num_heads=num_heads, num_kv_heads=num_kv_heads, d_head=32, tie_embeddings=tied)
    _assert_equal(theirs, ours, _llama_like(theirs, PRE | OF_HEADS))


def test_qwen2_has_a_bias_on_queries_keys_and_values_alone():
    config = transformers.Qwen2Config(
        **THEIR_SIZES, num_attention_heads=6, num_key_value_heads=3, rms_norm_eps=1e-6, tie_word_embeddings=False
    )
    theirs = _randomised(transformers.Qwen2ForCausalLM(config))
    ours = ModelConfig(**SIZES, num_heads=6, num_kv_heads=3, qkv_bias=True)
    _assert_equal(theirs, ours, _llama_like(theirs, PRE))


@pytest.mark.parametrize("window", [7, 300])
def test_mistral_sees_through_a_window(window):
    config = transformers.MistralConfig(
        **THEIR_SIZES, num_attention_heads=8, num_key_value_heads=2, rms_norm_eps=1e-6, sliding_window=window
    )
    theirs = _randomised(transformers.MistralForCausalLM(config))
    ours = ModelConfig(**SIZES, num_heads=8, num_kv_heads=2, window=window)
    _assert_equal(theirs, ours, _llama_like(theirs, PRE))


@geometries
def test_olmo2_norms_what_its_parts_give_and_whole_projections(num_heads, num_kv_heads):
    config = transformers.Olmo2Config(
        **THEIR_SIZES, num_attention_heads=num_heads, num_key_value_heads=num_kv_heads, rms_norm_eps=1e-6
    )
    theirs = _randomised(transformers.Olmo2ForCausalLM(config))
    ours = ModelConfig(
        **SIZES, num_heads=num_heads, num_kv_heads=num_kv_heads, norm_placement="output", qk_norm="projection"
    )
    _assert_equal(theirs, ours, _llama_like(theirs, OUTPUT | OF_HEADS))


@geometries
def test_gemma3(num_heads, num_kv_heads):
    config = transformers.Gemma3TextConfig(
        **THEIR_SIZES | {"num_hidden_layers": 4},
        num_attention_heads=num_heads,
        num_key_value_heads=num_kv_heads,
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=9,
        rms_norm_eps=1e-6,
        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    )
    theirs = _randomised(transformers.Gemma3ForCausalLM(config), norm_mean=0.0)
    ours = ModelConfig(
        **SIZES | {"num_layers": 4},
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        d_head=16,
        norm_placement="sandwich",
        norm_offset=1.0,
        feed_forward="geglu",
        gelu="tanh",
        qk_norm="head",
        attention_scale=24**-0.5,
        window=9,
        layer_pattern=("local", "local", "global"),
        rope_theta=1_000_000.0,
        rope_theta_local=10_000.0,
        rope_scaling=RopeScaling(kind="linear", factor=8.0),
        tie_embeddings=True,
        embedding_scale=96**0.5,
    )
    _assert_equal(theirs, ours, _llama_like(theirs, SANDWICH | OF_HEADS))


@pytest.mark.parametrize("num_heads", [4, 8])
def test_gpt2_is_its_preset(num_heads):
    config = transformers.GPT2Config(
        vocab_size=97, n_embd=96, n_layer=2, n_head=num_heads, n_positions=640, n_inner=80, attn_implementation="eager"
    )
    theirs = _randomised(transformers.GPT2LMHeadModel(config))
    state = theirs.state_dict()
    ours = {
        "token_embedding.weight": state["transformer.wte.weight"],
        "position_embedding.weight": state["transformer.wpe.weight"],
        "lm_head.weight": state["lm_head.weight"],
        "final_norm.weight": state["transformer.ln_f.weight"],
        "final_norm.bias": state["transformer.ln_f.bias"],
    }
    names = {
        "ln_1": "attention_norm",
        "attn.c_attn": "attention.query_key_value",
        "attn.c_proj": "attention.output",
        "ln_2": "feed_forward_norm",
        "mlp.c_fc": "feed_forward.up",
        "mlp.c_proj": "feed_forward.down",
    }
    for i in range(2):
        for there, here in names.items():
            weight = state[f"transformer.h.{i}.{there}.weight"]
            ours[f"blocks.{i}.{here}.weight"] = weight.T if "c_" in there else weight  # Conv1D is a Linear transposed
            ours[f"blocks.{i}.{here}.bias"] = state[f"transformer.h.{i}.{there}.bias"]
    _assert_equal(theirs, presets.gpt2(**SIZES, num_heads=num_heads), ours, near=2e-5)


def test_in_bfloat16_ours_is_no_further_from_the_truth_than_theirs():
    config = transformers.Qwen3Config(
        **THEIR_SIZES,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
    )
    theirs = _randomised(transformers.Qwen3ForCausalLM(config)).bfloat16()
    model = TransformerLM(presets.default(**SIZES, num_heads=4, num_kv_heads=2, d_head=32)).bfloat16().eval()
    model.load_state_dict(_llama_like(theirs, PRE | OF_HEADS))
    ids = torch.randint(97, (1, LENGTH))
    with torch.no_grad():
        found, expected = model(ids).double(), theirs(ids).logits.double()
        truth = model.double()(ids)
    error = (found - truth).square().mean().sqrt()
    assert error < 1.1 * (expected - truth).square().mean().sqrt()
    assert error < 0.03 * truth.std()
