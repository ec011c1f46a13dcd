"""Random models of transformers, a small one of every family, saved as folders."""

import torch
import transformers

LENGTH = 601
SIZES = {
    "vocab_size": 97,
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "max_position_embeddings": 640,
    "intermediate_size": 80,
    "attn_implementation": "eager",
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 128}
MIXED = ["sliding_attention", "sliding_attention", "full_attention"]
ROPE_BY_LAYER = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
}

FAMILIES = {
    "llama": (transformers.LlamaForCausalLM, {}),
    "llama with biases": (transformers.LlamaForCausalLM, {"attention_bias": True, "mlp_bias": True}),
    "llama 3.1": (transformers.LlamaForCausalLM, {"rope_parameters": {"rope_theta": 500_000.0, **LLAMA3}}),
    "mistral": (transformers.MistralForCausalLM, {"sliding_window": 9}),
    "mistral without a window": (transformers.MistralForCausalLM, {"sliding_window": None}),
    "qwen2": (transformers.Qwen2ForCausalLM, {}),
    "qwen2 with windows": (
        transformers.Qwen2ForCausalLM,
        {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    ),
    "qwen3": (transformers.Qwen3ForCausalLM, {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "olmo2": (transformers.Olmo2ForCausalLM, {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
    "gemma3": (
        transformers.Gemma3ForCausalLM,
        {
            "layer_types": MIXED,
            "sliding_window": 9,
            "query_pre_attn_scalar": 24,
            "rope_parameters": ROPE_BY_LAYER,
            "final_logit_softcapping": 30.0,
        },
    ),
}


def make_model(name="llama", num_heads=8, num_kv_heads=2, d_head=None, **fields):
    """A model with weights of deviation 0.1, norms far from 1 and biases far from 0."""
    torch.manual_seed(0)
    kind, own = FAMILIES[name]
    d_head = d_head or 96 // num_heads
    heads = {"num_attention_heads": num_heads, "num_key_value_heads": num_kv_heads, "head_dim": d_head}
    return randomised(kind(kind.config_class(**SIZES | heads | own | fields)))


def make_gpt2(num_heads=4, **fields):
    """The same of GPT-2."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 97, "n_embd": 96, "n_layer": 2, "n_head": num_heads, "n_positions": 640, "n_inner": 80}
    ends = {"bos_token_id": None, "eos_token_id": None}
    return randomised(transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | ends | fields)))


def make_gemma3_with_images():
    """Gemma 3 as it reads images, too, around the same language model."""
    torch.manual_seed(0)
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24}
    sizes = {name: value for name, value in SIZES.items() if name != "attn_implementation"}
    text = {**sizes, **heads, **FAMILIES["gemma3"][1], "final_logit_softcapping": None}
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    vision = {**small, "image_size": 28, "patch_size": 14}
    ids = {"boi_token_index": 94, "eoi_token_index": 95, "image_token_index": 96, "mm_tokens_per_image": 4}
    config = transformers.Gemma3Config(text_config=text, vision_config=vision, **ids)
    return randomised(transformers.Gemma3ForConditionalGeneration(config))


@torch.no_grad()
def randomised(model):
    """Every parameter drawn anew, ready to be evaluated."""
    adds_one = "Gemma" in type(model).__name__
    for name, parameter in model.named_parameters():
        is_norm = ("norm" in name or ".ln_" in name) and name.endswith("weight")
        mean, deviation = (0.0 if adds_one or not is_norm else 1.0), (0.3 if parameter.ndim == 1 else 0.1)
        parameter.normal_(mean, deviation)
    return model.eval()


def saved(model, folder):
    """The folder, holding the model as transformers writes it."""
    model.save_pretrained(folder)
    return folder
