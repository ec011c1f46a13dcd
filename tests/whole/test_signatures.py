"""The order and names of arguments that notebooks and courses call by: fixed, as the design's section 3 says."""

import inspect

import pytest

from pellucid import nn

SIGNATURES = {
    nn.Linear: "d_in, d_out, bias=False, device=None, dtype=None",
    nn.Embedding: "vocab_size, d_model, device=None, dtype=None",
    nn.RMSNorm: "d_model, epsilon=1e-05, offset=0.0",
    nn.LayerNorm: "d_model, epsilon=1e-05, bias=True",
    nn.SwiGLU: "d_model, d_ff, bias=False",
    nn.GeluFeedForward: "d_model, d_ff, bias=False, approximate='exact'",
    nn.RotaryPositions: "d_head, context_length, theta=10000.0, scaling=None",
    nn.LearnedPositions: "context_length, d_model, device=None, dtype=None",
    nn.CausalMultiHeadAttention: "config, layer=0, rotary=None",
    nn.TransformerBlock: "config, layer=0, rotary=None",
    nn.TransformerLM: "config",
    nn.KVCache: "config, batch_size, capacity, device=None, dtype=None",
    nn.softmax: "x, dim",
    nn.silu: "x",
    nn.attention_weights: "query, key, mask=None, *, scale=None",
    nn.scaled_dot_product_attention: "query, key, value, mask=None, *, scale=None, dropout=0.0",
    nn.TransformerLM.forward: "self, token_ids, *, positions=None, document_ids=None, lengths=None, cache=None, "
    "last_only=False",
}
SIGNATURES[nn.TransformerLM.hidden_states] = SIGNATURES[nn.TransformerLM.forward]


@pytest.mark.parametrize("thing", SIGNATURES, ids=lambda thing: thing.__qualname__)
def test_arguments_keep_their_order_and_names(thing):
    signature = inspect.signature(thing)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    found = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    assert found == f"({SIGNATURES[thing]})"
