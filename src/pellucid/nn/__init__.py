"""The model, written out: tensors in, tensors out.

Read the files in this order; each uses only what came before: linear, embedding, softmax, activations, norms,
feed_forward, positions, rope, attention, kv_cache, multi_head, block, transformer, initialize.

In: tensors and a `ModelConfig`.  Out: tensors.  Used by: everything above.  Read next: linear.py.
"""

from pellucid.nn.activations import gelu, gelu_tanh, relu2, silu
from pellucid.nn.attention import attention_weights, causal_mask, fused_attention, scaled_dot_product_attention
from pellucid.nn.block import TransformerBlock
from pellucid.nn.embedding import Embedding
from pellucid.nn.feed_forward import (
    GEGLU,
    FeedForward,
    GatedFeedForward,
    GeluFeedForward,
    Relu2FeedForward,
    SiluFeedForward,
    SwiGLU,
)
from pellucid.nn.initialize import initialize
from pellucid.nn.kv_cache import KVCache, LayerCache
from pellucid.nn.linear import Linear
from pellucid.nn.multi_head import CausalMultiHeadAttention
from pellucid.nn.norms import LayerNorm, RMSNorm
from pellucid.nn.positions import LearnedPositions
from pellucid.nn.rope import RotaryPositions, rotary_frequencies
from pellucid.nn.softmax import softmax
from pellucid.nn.transformer import TransformerLM

__all__ = [
    "GEGLU",
    "CausalMultiHeadAttention",
    "Embedding",
    "FeedForward",
    "GatedFeedForward",
    "GeluFeedForward",
    "KVCache",
    "LayerCache",
    "LayerNorm",
    "LearnedPositions",
    "Linear",
    "RMSNorm",
    "Relu2FeedForward",
    "RotaryPositions",
    "SiluFeedForward",
    "SwiGLU",
    "TransformerBlock",
    "TransformerLM",
    "attention_weights",
    "causal_mask",
    "fused_attention",
    "gelu",
    "gelu_tanh",
    "initialize",
    "relu2",
    "rotary_frequencies",
    "scaled_dot_product_attention",
    "silu",
    "softmax",
]
