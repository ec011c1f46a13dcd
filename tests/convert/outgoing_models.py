"""Small models on their way out, of every shape that has a family, with random weights of deviation 0.1."""

import torch

from pellucid import presets
from pellucid.convert import Outgoing, Passage
from pellucid.model_config import RopeScaling
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer, train_byte_pairs

SIZES = {"vocab_size": 280, "context_length": 640, "d_model": 96, "num_layers": 3, "num_heads": 4, "d_ff": 96}
GROUPED = {**SIZES, "num_kv_heads": 2, "d_head": 32}
LLAMA3 = RopeScaling(kind="llama3", factor=8.0, original_context_length=128)
MIXED = ("local", "local", "global")

SHAPES = {
    "llama": presets.llama(**GROUPED, norm_epsilon=1e-5, rope_theta=500_000.0),
    "llama with biases": presets.llama(
        **GROUPED, qkv_bias=True, attention_output_bias=True, feed_forward_bias=True, tie_embeddings=True
    ),
    "llama 3.1": presets.llama(**GROUPED, rope_scaling=LLAMA3, rope_theta=500_000.0),
    "mistral": presets.mistral(**GROUPED, window=9),
    "qwen2": presets.qwen2(**GROUPED, tie_embeddings=True),
    "qwen2 with windows": presets.qwen2(**GROUPED, window=9, layer_pattern=("global", "local", "local")),
    "qwen3": presets.default(**GROUPED),
    "qwen3 tied": presets.default(**GROUPED, tie_embeddings=True, rope_theta=1e6),
    "olmo2": presets.olmo2(**GROUPED),
    "gemma3": presets.gemma3(
        **GROUPED,
        window=9,
        layer_pattern=MIXED,
        attention_scale=24**-0.5,
        rope_scaling=RopeScaling(kind="linear", factor=8.0),
        logit_soft_cap=30.0,
    ),
    "gpt2": presets.gpt2(**SIZES, dropout=0.0),
    "gpt2 untied": presets.gpt2(**SIZES, tie_embeddings=False, feed_forward="relu2"),
}
"""Each expressible by the family it is called for."""

TEXT = "once upon a time there was a model that wrote: a time upon a time, and once more, naïve café.\n"


def made(config):
    """A model of a shape."""
    torch.manual_seed(0)
    model = TransformerLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = "norm" in name and name.endswith("weight") and not config.norm_offset
            parameter.normal_(1.0 if is_norm else 0.0, 0.3 if parameter.ndim == 1 else 0.1)
    return model


def byte_pairs():
    return train_byte_pairs([TEXT * 3], 280)


def letters():
    return character_tokenizer([TEXT])


def outgoing(model, tokenizer=None, **more):
    """The same with a tokenizer of 280 ids."""
    return Outgoing.of(model, tokenizer or byte_pairs(), **{"name": "small", **more})


def passage(vocab_size=280, length=300):
    generator = torch.Generator().manual_seed(1)
    return Passage(torch.randint(vocab_size, (length,), generator=generator).tolist(), "random ids")
