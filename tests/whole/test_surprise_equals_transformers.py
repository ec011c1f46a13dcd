"""Surprise by our sliding window is what transformers' own models give by theirs: the loop of its perplexity guide."""

import numpy as np
import pytest
import torch
import transformers

from pellucid import presets
from pellucid.inspection import surprises
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from tests.whole.test_equals_transformers import OF_HEADS, PRE, SIZES, THEIR_SIZES, _llama_like, _randomised

CONTEXT, LENGTH = 32, 150
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32}
OURS = {**SIZES, "context_length": CONTEXT, "num_heads": 4, "num_kv_heads": 2, "d_head": 32}


def qwen3():
    config = transformers.Qwen3Config(**THEIR_SIZES, **HEADS, rms_norm_eps=1e-6, tie_word_embeddings=False)
    theirs = _randomised(transformers.Qwen3ForCausalLM(config))
    return theirs, presets.default(**OURS), _llama_like(theirs, PRE | OF_HEADS)


def llama():
    config = transformers.LlamaConfig(**THEIR_SIZES, **HEADS, rms_norm_eps=1e-5)
    theirs = _randomised(transformers.LlamaForCausalLM(config))
    return theirs, ModelConfig(**OURS, norm_epsilon=1e-5), _llama_like(theirs, PRE)


@torch.no_grad()
def their_loss(model, ids, stride):
    """Sum of what they lose, window by window, labels before the new ones masked."""
    total, scored = 0.0, 0
    for start in range(0, LENGTH, stride):
        stop = min(start + CONTEXT + 1, LENGTH)  # one more than we feed: their labels are shifted inside
        inputs = torch.as_tensor(ids[start:stop])[None]
        new = stop - 1 - scored
        labels = inputs.clone()
        labels[:, : len(ids[start:stop]) - new] = -100
        logits = model(inputs).logits[:, :-1]
        total += float(torch.nn.functional.cross_entropy(logits[0], labels[0, 1:], reduction="sum"))
        scored += new
        if stop == LENGTH:
            break
    return total, scored


@pytest.mark.parametrize("family", [qwen3, llama])
@pytest.mark.parametrize("stride", [1, 10, 16, 32])
def test_the_loss_of_a_text_longer_than_the_context(family, stride):
    theirs, config, weights = family()
    ours = TransformerLM(config)
    ours.load_state_dict(weights)
    ids = np.random.default_rng(stride).integers(0, 97, LENGTH)
    expected, scored = their_loss(theirs, ids, stride)
    nats = surprises(ours, [ids], stride=stride)[0]
    assert len(nats) == scored == LENGTH - 1
    assert float(nats.sum(dtype=np.float64)) == pytest.approx(expected, rel=1e-5)
