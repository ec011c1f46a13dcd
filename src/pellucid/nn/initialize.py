"""How a model's weights begin. Constructors use `course`; a recipe may choose another scheme.

In: a model, the name of a scheme, a seed.  Out: the same model, filled anew.  Used by: train.  Read next: ../loss.py.
"""

import math
from typing import Literal, get_args

import torch
from torch import nn

from pellucid.errors import ConfigError
from pellucid.nn.embedding import Embedding
from pellucid.nn.linear import Linear, linear_std, truncated_normal_
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

    All normals are cut at 3 standard deviations; L is num_layers; the d_out of q, k and v is each one's own.

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
        for module in model.modules():
            _fill(module, model, scheme)
    return model


def _fill(module: nn.Module, model: TransformerLM, scheme: Scheme) -> None:
    if isinstance(module, (RMSNorm, LayerNorm)):
        module.weight.fill_(1.0 - getattr(module, "offset", 0.0))
    if getattr(module, "bias", None) is not None:
        module.bias.zero_()
    if isinstance(module, Embedding):
        truncated_normal_(module.weight, _embedding_std(module, model, scheme))
    if not isinstance(module, Linear) or module.weight is model.token_embedding.weight:
        return
    ends_a_part = module is model.lm_head or any(
        module in (block.attention.output, block.feed_forward.down) for block in model.blocks
    )
    fused = {block.attention.query_key_value: block.attention.slices for block in model.blocks}
    for part in module.weight.split(fused.get(module, (module.weight.shape[0],))):
        truncated_normal_(part, _linear_std(part, scheme)) if part.numel() else None
    if ends_a_part and scheme == "zero-output":
        module.weight.zero_()
    if ends_a_part and scheme == "gpt2" and module is not model.lm_head:
        module.weight.div_(math.sqrt(2 * model.config.num_layers))


def _embedding_std(module: Embedding, model: TransformerLM, scheme: Scheme) -> float:
    small = 0.02  # GPT-2's released code
    is_token = module is model.token_embedding
    match scheme:
        case "course":
            return 1.0
        case "gpt2":
            return small
        case "zero-output":
            return 1.0 if is_token and not model.config.tie_embeddings else small


def _linear_std(weight: torch.Tensor, scheme: Scheme) -> float:
    d_out, d_in = weight.shape
    return {"course": linear_std(d_in, d_out), "gpt2": 0.02, "zero-output": 1 / math.sqrt(d_in)}[scheme]
