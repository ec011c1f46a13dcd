"""Model families and the default shape, as values of `ModelConfig`.

In: sizes.  Out: a `ModelConfig`.  Used by: train, convert, bench.  Read next: train/.
"""

from pellucid.model_config import ModelConfig


def default(**sizes) -> ModelConfig:
    """The shape `train` makes, which common runtimes can run: that of Qwen3.

    Source: Yang et al. 2025 (Qwen3), section 2.

    Example:
        >>> default(d_model=64, num_heads=2).qk_norm
        'head'
    """
    return ModelConfig(**{"qk_norm": "head", "norm": "rms", "feed_forward": "swiglu", "positions": "rope", **sizes})


def gpt2(**sizes) -> ModelConfig:
    """The shape of GPT-2: layer norms, learned positions, tanh GELU, biases, a tied head.

    Source: Radford et al. 2019 and its released configuration (124 M parameters).

    Example:
        >>> gpt2().d_ff
        3072
    """
    shape = {
        "vocab_size": 50257,
        "context_length": 1024,
        "d_model": 768,
        "num_layers": 12,
        "num_heads": 12,
        "norm": "layer",
        "norm_epsilon": 1e-5,
        "feed_forward": "gelu",
        "gelu": "tanh",
        "positions": "learned",
        "qkv_bias": True,
        "attention_output_bias": True,
        "feed_forward_bias": True,
        "tie_embeddings": True,
        "dropout": 0.1,
    }
    return ModelConfig(**{**shape, **sizes})


def char_gpt(vocab_size: int, **sizes) -> ModelConfig:
    """The character GPT that `ladder.CharGPT` spells out; arguments and defaults as there.

    Example:
        >>> char_gpt(65).num_heads
        4
    """
    sizes = {"d_model": 64, "d_head": 16, "num_layers": 2, "context_length": 64, "dropout": 0.4, **sizes}
    shape = {
        "num_heads": sizes["d_model"] // sizes["d_head"],
        "d_ff": 4 * sizes["d_model"],
        "norm": "layer",
        "norm_epsilon": 1e-5,
        "feed_forward": "gelu",
        "positions": "learned",
        "attention_output_bias": True,
        "feed_forward_bias": True,
        "head_bias": True,
    }
    return ModelConfig(vocab_size=vocab_size, **{**shape, **sizes})


def llama(**sizes) -> ModelConfig:
    """The shape of Llama 1 to 3, SmolLM2 and TinyLlama: pre-norm, rope, SwiGLU, no biases.

    Source: Touvron et al. 2023, section 2.2.

    Example:
        >>> llama().norm
        'rms'
    """
    return ModelConfig(**{"norm": "rms", "feed_forward": "swiglu", "positions": "rope", **sizes})


def mistral(**sizes) -> ModelConfig:
    """The shape of Mistral 7B: Llama's, through a sliding window.

    Source: Jiang et al. 2023 (Mistral 7B), section 2.

    Example:
        >>> mistral().window
        4096
    """
    return llama(**{"window": 4096, **sizes})


def qwen2(**sizes) -> ModelConfig:
    """The shape of Qwen2 and Qwen2.5: Llama's, with a bias on queries, keys and values.

    Source: Yang et al. 2024 (Qwen2), section 2.2.

    Example:
        >>> qwen2().qkv_bias
        True
    """
    return llama(**{"qkv_bias": True, **sizes})


def olmo2(**sizes) -> ModelConfig:
    """The shape of OLMo-2: norms behind the parts, and over all queries and all keys.

    Source: OLMo team 2025 (2 OLMo 2 Furious), section 2.1.

    Example:
        >>> olmo2().norm_placement
        'output'
    """
    return llama(**{"norm_placement": "output", "qk_norm": "projection", "norm_epsilon": 1e-6, **sizes})


def gemma3(**sizes) -> ModelConfig:
    """The shape of Gemma 3's text models: five local layers to a global one, sandwich norms that add 1 to their weight.

    Source: Gemma team 2025 (Gemma 3), section 2; the scaled embedding and 1 + w from Gemma's released code.

    Example:
        >>> gemma3(d_model=64, num_heads=4).embedding_scale
        8.0
    """
    d_model = sizes.get("d_model", 1152)  # 1152, 4, 1, 256: Gemma 3 1B
    shape = {
        "d_model": d_model,
        "num_heads": 4,
        "num_kv_heads": 1,
        "d_head": 256,
        "norm_placement": "sandwich",
        "norm_offset": 1.0,
        "feed_forward": "geglu",
        "gelu": "tanh",
        "qk_norm": "head",
        "window": 512,
        "layer_pattern": ("local",) * 5 + ("global",),
        "rope_theta": 1_000_000.0,
        "rope_theta_local": 10_000.0,
        "embedding_scale": d_model**0.5,
        "tie_embeddings": True,
    }
    return llama(**{**shape, **sizes})
