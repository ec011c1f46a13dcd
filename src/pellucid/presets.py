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
