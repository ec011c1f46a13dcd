"""How a model's weights begin. Constructors use `course`; a recipe may choose another scheme.

In: a model, the name of a scheme, a seed.  Out: the same model, filled anew.  Used by: train.  Read next: ../loss.py.
"""

import math
from typing import Literal, get_args

import torch

from pellucid.errors import ConfigError
from pellucid.nn.linear import Linear, linear_std, truncated_normal_
from pellucid.nn.multi_head import CausalMultiHeadAttention
from pellucid.nn.norms import LayerNorm, RMSNorm
from pellucid.nn.transformer import TransformerLM

Scheme = Literal["course", "gpt2", "zero-output"]


@torch.no_grad()
def initialize(model: TransformerLM, scheme: Scheme = "course", seed: int | None = None) -> TransformerLM:
    """Fill every weight anew.

        weight               course                   gpt2                  zero-output
        token embedding      N(0, 1)                  N(0, 0.02^2)          N(0, 1), tied: N(0, 0.02^2)
        learned positions    N(0, 1)                  N(0, 0.02^2)          N(0, 0.02^2)
        q, k, v, gate, up    N(0, 2/(d_in+d_out))     N(0, 0.02^2)          N(0, 1/d_in)
        output, down         N(0, 2/(d_in+d_out))     N(0, 0.02^2/(2L))     0
        head (untied)        N(0, 2/(d_in+d_out))     N(0, 0.02^2)          0
        biases               0                        0                     0
        norm weights         1                        1                     1

    All normals are cut at 3 standard deviations; L is num_layers; the d_out of q, k and v is each one's own. A part of
    one's own begins as its constructor makes it, but for maps of our kind that have these names.

    Args:
        model: What to fill.
        scheme: A column of the table.
        seed: For a generator of its own; the global random stream is left alone. Default: drawn from that stream.

    Source: CS336 assignment 1, section 3.3 (course); Radford et al. 2019, section 2.3 (gpt2); zero outputs make every
    block the identity at first: Zhang et al. 2019 (Fixup), Yang et al. 2022 (muP) for the head.

    Example:
        >>> from pellucid.model_config import ModelConfig
        >>> model = initialize(TransformerLM(ModelConfig(d_model=64, num_heads=4)), "zero-output", seed=0)
        >>> float(model(torch.tensor([[1, 2]])).abs().max())
        0.0
    """
    if scheme not in get_args(Scheme):
        raise ConfigError(f"a scheme among {get_args(Scheme)}", came=repr(scheme), remedy="choose one of them")
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        _fill(model, scheme)
    return model


def _fill(model: TransformerLM, scheme: Scheme) -> None:
    if model.config.own_parts:
        model.load_state_dict(TransformerLM(model.config).state_dict())
    tied, small = model.config.tie_embeddings, 0.02  # GPT-2's released code
    for module in model.modules():
        if isinstance(module, (RMSNorm, LayerNorm)):
            module.weight.fill_(1.0 - getattr(module, "offset", 0.0))
        if isinstance(module, (Linear, LayerNorm)) and module.bias is not None:
            module.bias.zero_()

    wide = scheme == "course" or (scheme == "zero-output" and not tied)
    truncated_normal_(model.token_embedding.weight, 1.0 if wide else small)
    if model.position_embedding is not None:
        truncated_normal_(model.position_embedding.weight, 1.0 if scheme == "course" else small)

    inner, outer = [], [] if tied else [model.lm_head.weight]
    for block in model.blocks:
        attention, feed_forward = block.attention, block.feed_forward
        if isinstance(attention, CausalMultiHeadAttention):
            inner += attention.query_key_value.weight.split(attention.slices)
            outer += [attention.output.weight]
        parts = [getattr(feed_forward, name, None) for name in ("up", "gate", "down")]
        up, gate, down = ([part.weight] if isinstance(part, Linear) else [] for part in parts)
        inner, outer = inner + up + gate, outer + down
    for weight in inner + outer:
        d_out, d_in = weight.shape
        std = {"course": linear_std(d_in, d_out), "gpt2": small, "zero-output": 1 / math.sqrt(d_in)}[scheme]
        truncated_normal_(weight, std)
    for weight in outer:
        if scheme == "zero-output":
            weight.zero_()
        elif scheme == "gpt2" and weight is not model.lm_head.weight:
            weight.div_(math.sqrt(2 * model.config.num_layers))
