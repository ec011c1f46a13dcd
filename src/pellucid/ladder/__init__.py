"""The ladder: attention from nothing to multi-head, a rung a file, and a small GPT at the top.

Each rung does one thing more than the rung below it, and a test proves them equal by carrying the weights across.

    simple_attention_loop          attention without weights, every number in a loop
    simple_attention               the same as two matrix products
    SelfAttentionV1                queries, keys and values that can be learned; scaled scores
    SelfAttentionV2                the same with linear layers
    CausalAttention                no look into the future; dropout
    MultiHeadAttentionWrapper      several heads side by side
    MaskedAttention                one head as it stands in a model
    MaskedMultiHeadAttention       heads that fill the width, and a projection that mixes them
    SplitHeads                     the same with one product a role
    CharGPT                        a GPT over characters, in one file: embeddings, Blocks, FeedForward, head

The rungs stand on torch's own layers, as the textbooks do. The next step is `pellucid.nn`, which writes those out as
well: tests show `nn.CausalMultiHeadAttention` equal to SplitHeads, and `presets.char_gpt` equal to CharGPT.

In: vectors or token ids.  Out: context vectors or logits.  Used by: learners, docs/ladder.md.
Read next: simple_attention_loop.py.
"""

from pellucid.ladder import lessons
from pellucid.ladder.causal_attention import CausalAttention
from pellucid.ladder.char_gpt import Block, CharGPT, FeedForward
from pellucid.ladder.masked_attention import MaskedAttention
from pellucid.ladder.masked_multi_head_attention import MaskedMultiHeadAttention
from pellucid.ladder.multi_head_attention_wrapper import MultiHeadAttentionWrapper
from pellucid.ladder.self_attention_v1 import SelfAttentionV1
from pellucid.ladder.self_attention_v2 import SelfAttentionV2
from pellucid.ladder.simple_attention import simple_attention
from pellucid.ladder.simple_attention_loop import simple_attention_loop
from pellucid.ladder.split_heads import SplitHeads
from pellucid.ladder.worked_example import worked_example

__all__ = [
    "Block",
    "CausalAttention",
    "CharGPT",
    "FeedForward",
    "MaskedAttention",
    "MaskedMultiHeadAttention",
    "MultiHeadAttentionWrapper",
    "SelfAttentionV1",
    "SelfAttentionV2",
    "SplitHeads",
    "lessons",
    "simple_attention",
    "simple_attention_loop",
    "worked_example",
]
