"""A small random model of every architecture pellucid can express, with weights large enough that errors show.

In: nothing.  Out: `ARCHITECTURES`, `random_model`.  Used by: the tests of this folder.  Read next: any of them.
"""

import torch

from pellucid import presets
from pellucid.model_config import ModelConfig, RopeScaling
from pellucid.nn import TransformerLM

SIZES = {"vocab_size": 61, "d_model": 48, "num_layers": 3, "num_heads": 4, "context_length": 256}
STRETCHED = RopeScaling(kind="llama3", factor=4.0, original_context_length=64)

ARCHITECTURES = {
    "default": presets.default(**SIZES, num_kv_heads=2, d_head=16),
    "gpt2": presets.gpt2(**SIZES, dropout=0.0),
    "char_gpt": presets.char_gpt(61, d_model=48, num_layers=3, context_length=256, dropout=0.0),
    "llama": ModelConfig(**SIZES, num_kv_heads=1, rope_theta=500_000.0, rope_scaling=STRETCHED),
    "window": ModelConfig(**SIZES, num_kv_heads=2, window=6),
    "gemma3": ModelConfig(
        **SIZES,
        num_kv_heads=2,
        d_head=8,
        norm_placement="sandwich",
        norm_offset=1.0,
        feed_forward="geglu",
        gelu="tanh",
        qk_norm="head",
        window=5,
        layer_pattern=("local", "local", "global"),
        rope_theta=1_000_000.0,
        rope_theta_local=10_000.0,
        tie_embeddings=True,
        embedding_scale=48**0.5,
        attention_scale=0.25,
    ),
    "olmo2": ModelConfig(**SIZES, norm_placement="output", qk_norm="projection", num_kv_heads=2),
    "original": ModelConfig(
        **SIZES, norm="layer", norm_placement="post", feed_forward="gelu", positions="learned", qkv_bias=True
    ),
    "no positions": ModelConfig(**SIZES, positions="none", feed_forward="relu2", logit_soft_cap=15.0),
}


def random_model(config: ModelConfig, dtype: torch.dtype = torch.float32, std: float = 0.2) -> TransformerLM:
    """Every weight drawn anew, norms around 1 and biases around 0, ready to be evaluated."""
    model = TransformerLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            ones = name.endswith("norm.weight")
            parameter.normal_(1.0 - config.norm_offset if ones else 0.0, 0.3 if parameter.ndim == 1 else std)
    return model.to(dtype).eval()


def random_ids(*shape: int) -> torch.Tensor:
    return torch.randint(SIZES["vocab_size"], shape)
