"""Model families and the default shape, as values of `ModelConfig`.

In: sizes.  Out: a `ModelConfig`.  Used by: train, convert, bench.  Read next: train/.
"""

from pellucid.model_config import ModelConfig


def default(**sizes) -> ModelConfig:
    """The shape `train` makes, which common runtimes can run: that of Qwen3."""
    return ModelConfig(**{"qk_norm": "head", "norm": "rms", "feed_forward": "swiglu", "positions": "rope", **sizes})


def gpt2(**sizes) -> ModelConfig:
    """The shape of GPT-2: layer norms, learned positions, tanh GELU, biases, a tied head.

    Source: Radford et al. 2019 and its released configuration (124 M parameters).
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
    """The character GPT that `ladder.CharGPT` spells out; arguments and defaults as there."""
    given = {"d_model": 64, "d_head": 16, "num_layers": 2, "context_length": 64, "dropout": 0.4, **sizes}
    return ModelConfig(
        vocab_size=vocab_size,
        num_heads=given["d_model"] // given["d_head"],
        norm="layer",
        norm_epsilon=1e-5,
        feed_forward="gelu",
        positions="learned",
        attention_output_bias=True,
        feed_forward_bias=True,
        head_bias=True,
        d_ff=4 * given["d_model"],
        **given,
    )
