"""Stanford CS336, assignment 1: its adapter functions, answered by pellucid's parts.

Names, argument names and weight names are the course's; what they do stands in the rooms named beside each. To hand
this in to the course's test suite, its `tests/adapters.py` is one line: `from pellucid.cs336 import *`.

In: the course's arguments.  Out: what its tests expect.  Used by: learners.  Read next: convert/names.py, nn/linear.py.
"""

import io
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor, nn

from pellucid.convert.names import CS336, halves_to_neighbours, neighbours_to_halves, to_ours
from pellucid.convert.pickled import read_pickled
from pellucid.errors import DataError
from pellucid.loss import cross_entropy
from pellucid.model_config import ModelConfig
from pellucid.nn import (
    CausalMultiHeadAttention,
    Embedding,
    Linear,
    RMSNorm,
    RotaryPositions,
    SwiGLU,
    TransformerBlock,
    TransformerLM,
    scaled_dot_product_attention,
    silu,
    softmax,
)
from pellucid.optim import AdamW, clip_gradients
from pellucid.text.byte_pairs_by_hand import HandTokenizer, train_byte_pairs_by_hand

__all__ = [
    "get_adamw_cls",
    "get_tokenizer",
    "run_cross_entropy",
    "run_embedding",
    "run_get_batch",
    "run_get_lr_cosine_schedule",
    "run_gradient_clipping",
    "run_linear",
    "run_load_checkpoint",
    "run_multihead_self_attention",
    "run_multihead_self_attention_with_rope",
    "run_rmsnorm",
    "run_rope",
    "run_save_checkpoint",
    "run_scaled_dot_product_attention",
    "run_silu",
    "run_softmax",
    "run_swiglu",
    "run_train_bpe",
    "run_transformer_block",
    "run_transformer_lm",
]

File = str | os.PathLike[str] | IO[bytes] | io.IOBase
Number = float | int  # the course passes a theta or a rate of 1 as a whole number

NORM_EPSILON = 1e-5  # of every RMSNorm in the course


# --- nn: the parts


def run_linear(
    d_in: int, d_out: int, weights: Float[Tensor, "d_out d_in"], in_features: Float[Tensor, "*batch d_in"]
) -> Float[Tensor, "*batch d_out"]:
    """A linear map without bias. See `nn.Linear`."""
    return _call(lambda: Linear(d_in, d_out), {"weight": weights}, in_features)


def run_embedding(
    vocab_size: int, d_model: int, weights: Float[Tensor, "vocab d_model"], token_ids: Integer[Tensor, "*batch"]
) -> Float[Tensor, "*batch d_model"]:
    """Rows of an embedding. See `nn.Embedding`."""
    return _call(lambda: Embedding(vocab_size, d_model), {"weight": weights}, token_ids)


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Float[Tensor, "d_ff d_model"],
    w2_weight: Float[Tensor, "d_model d_ff"],
    w3_weight: Float[Tensor, "d_ff d_model"],
    in_features: Float[Tensor, "*batch d_model"],
) -> Float[Tensor, "*batch d_model"]:
    """w2 (silu(w1 x) * w3 x): w1 is our gate, w3 up, w2 down. See `nn.SwiGLU`."""
    weights = {"gate.weight": w1_weight, "up.weight": w3_weight, "down.weight": w2_weight}
    return _call(lambda: SwiGLU(d_model, d_ff), weights, in_features)


def run_silu(in_features: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """x * sigmoid(x). See `nn.silu`."""
    return silu(in_features)


def run_rmsnorm(
    d_model: int, eps: Number, weights: Float[Tensor, " d_model"], in_features: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, "*batch d_model"]:
    """Each vector divided by its root mean square. See `nn.RMSNorm`."""
    return _call(lambda: RMSNorm(d_model, float(eps)), {"weight": weights}, in_features)


def run_softmax(in_features: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """Positive numbers that sum to 1 along `dim`. See `nn.softmax`."""
    return softmax(in_features, dim)


# --- nn: attention


def run_scaled_dot_product_attention(
    Q: Float[Tensor, "*batch query d_head"],
    K: Float[Tensor, "*batch key d_head"],
    V: Float[Tensor, "*batch key d_value"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_value"]:
    """Attention with any leading axes; a query may attend where the mask is True. See nn/attention.py."""
    return scaled_dot_product_attention(Q, K, V, mask)


def run_rope(
    d_k: int,
    theta: Number,
    max_seq_len: int,
    in_query_or_key: Float[Tensor, "*batch query d_head"],
    token_positions: Integer[Tensor, "*#batch query"],
) -> Float[Tensor, "*batch query d_head"]:
    """Neighbouring features (2i, 2i + 1) turned by their position, which broadcasts over leading axes.

    Inside, pairs are the halves of a head; the features are reordered on the way in and back. See `nn.RotaryPositions`.
    """
    rotary = RotaryPositions(d_k, max_seq_len, float(theta)).to(in_query_or_key.device)
    turned = rotary(neighbours_to_halves(in_query_or_key, d_k, dim=-1), token_positions.long())
    return halves_to_neighbours(turned, d_k, dim=-1)


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Float[Tensor, "d_model d_in"],
    k_proj_weight: Float[Tensor, "d_model d_in"],
    v_proj_weight: Float[Tensor, "d_model d_in"],
    o_proj_weight: Float[Tensor, "d_model d_model"],
    in_features: Float[Tensor, "*batch query d_in"],
) -> Float[Tensor, "*batch query d_model"]:
    """Causal multi-head attention that knows no positions. See `nn.CausalMultiHeadAttention`."""
    config = ModelConfig(d_model=d_model, num_heads=num_heads, num_layers=1, positions="none")
    projections = (q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return _attend(config, projections, in_features, None)


def run_multihead_self_attention_with_rope(
    d_model: int,
    num_heads: int,
    max_seq_len: int,
    theta: Number,
    q_proj_weight: Float[Tensor, "d_model d_in"],
    k_proj_weight: Float[Tensor, "d_model d_in"],
    v_proj_weight: Float[Tensor, "d_model d_in"],
    o_proj_weight: Float[Tensor, "d_model d_model"],
    in_features: Float[Tensor, "*batch query d_in"],
    token_positions: Integer[Tensor, "*#batch query"] | None = None,
) -> Float[Tensor, "*batch query d_model"]:
    """Causal multi-head attention whose queries and keys are turned by position (0, 1, 2, ... unless given)."""
    config = ModelConfig(
        d_model=d_model, num_heads=num_heads, num_layers=1, context_length=max_seq_len, rope_theta=float(theta)
    )
    projections = (q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return _attend(config, projections, in_features, token_positions)


# --- nn: the block and the model


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: Number,
    weights: Mapping[str, Tensor],
    in_features: Float[Tensor, "*batch query d_model"],
) -> Float[Tensor, "*batch query d_model"]:
    """A pre-norm block with rotary positions. See `nn.TransformerBlock`."""
    config = ModelConfig(
        d_model=d_model,
        num_heads=num_heads,
        num_layers=1,
        d_ff=d_ff,
        context_length=max_seq_len,
        rope_theta=float(theta),
        norm_epsilon=NORM_EPSILON,
    )
    named = {f"layers.0.{name}": weight for name, weight in weights.items()}
    ours = _without("blocks.0.", to_ours(named, CS336, config, strict=False))
    flat = in_features.reshape(-1, *in_features.shape[-2:])
    return _call(lambda: TransformerBlock(config), ours, flat).view_as(in_features)


def run_transformer_lm(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    rope_theta: Number,
    weights: Mapping[str, Tensor],
    in_indices: Integer[Tensor, "*batch query"],
) -> Float[Tensor, "*batch query vocab"]:
    """Unnormalised logits of a Transformer language model. See `nn.TransformerLM`."""
    config = ModelConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        d_ff=d_ff,
        rope_theta=float(rope_theta),
        norm_epsilon=NORM_EPSILON,
    )
    ours = to_ours(weights, CS336, config, strict=False)
    flat = in_indices.reshape(-1, in_indices.shape[-1])
    return _call(lambda: TransformerLM(config), ours, flat).unflatten(0, in_indices.shape[:-1])


# --- loss and optim


def run_cross_entropy(inputs: Float[Tensor, "*batch vocab"], targets: Integer[Tensor, "*batch"]) -> Float[Tensor, ""]:
    """Mean surprise at the targets, from unnormalised logits. See `loss.cross_entropy`."""
    return cross_entropy(inputs, targets)


def run_gradient_clipping(parameters: Iterable[nn.Parameter], max_l2_norm: Number) -> None:
    """Scale all gradients in place so that their common norm is at most `max_l2_norm`. See `optim.clip_gradients`."""
    clip_gradients(parameters, float(max_l2_norm))


def get_adamw_cls() -> type[torch.optim.Optimizer]:
    """The class `optim.AdamW`."""
    return AdamW


def run_get_lr_cosine_schedule(
    it: int, max_learning_rate: Number, min_learning_rate: Number, warmup_iters: int, cosine_cycle_iters: int
) -> float:
    """The course's schedule, whose iterations count from 0: its first learning rate is 0.

    `optim.schedule.cosine` is ours: steps count from 1, and the first moves something.

    Example:
        >>> [run_get_lr_cosine_schedule(it, 1.0, 0.1, 2, 4) for it in range(6)]
        [0.0, 0.5, 1.0, 0.55, 0.1, 0.1]
    """
    if it < warmup_iters:
        return max_learning_rate * it / warmup_iters
    if it >= cosine_cycle_iters:
        return min_learning_rate
    fallen = (it - warmup_iters) / (cosine_cycle_iters - warmup_iters)
    return min_learning_rate + (1 + math.cos(math.pi * fallen)) / 2 * (max_learning_rate - min_learning_rate)


# --- data and checkpoints


def run_get_batch(
    dataset: np.ndarray, batch_size: int, context_length: int, device: str
) -> tuple[Int[Tensor, "batch position"], Int[Tensor, "batch position"]]:
    """Stretches of `dataset` from random places, and the same stretches one token on.

    Places come from torch's global stream, so that `torch.manual_seed` makes them repeatable.

    Raises:
        DataError: fewer than context_length + 1 tokens.
        RuntimeError, AssertionError: from torch, if there is no such device.
    """
    num_starts = len(dataset) - context_length
    if num_starts < 1:
        raise DataError(
            f"at least {context_length + 1} tokens (context_length + 1)",
            came=str(len(dataset)),
            remedy="use more text or a shorter context_length",
        )
    starts = torch.randint(num_starts, (batch_size, 1)).numpy()
    rows = torch.from_numpy(dataset[starts + np.arange(context_length + 1)].astype(np.int64)).to(device)
    return rows[:, :-1], rows[:, 1:]


def run_save_checkpoint(model: nn.Module, optimizer: torch.optim.Optimizer, iteration: int, out: File) -> None:
    """Write model, optimizer and iteration to a path or an open binary file, in torch's format as the course does.

    Runs of pellucid's own are safetensors and JSON (checkpoint/).
    """
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iteration": iteration}, cast(IO[bytes], out)
    )


def run_load_checkpoint(src: File, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Restore what `run_save_checkpoint` wrote, and return its iteration. Data alone is read, never code.

    Raises:
        ModelFileError: a file that holds more than tensors, numbers and text, or something else altogether.
    """
    state = read_pickled(src)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["iteration"]


# --- text


def get_tokenizer(
    vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], special_tokens: list[str] | None = None
) -> HandTokenizer:
    """A byte-level BPE tokenizer with `encode`, `encode_iterable` and `decode`. See `text.byte_pairs_by_hand`."""
    return HandTokenizer(vocab, merges, special_tokens)


def run_train_bpe(
    input_path: str | os.PathLike[str], vocab_size: int, special_tokens: list[str], **kwargs: Any
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Learn a vocabulary and its merges from a text file. See `text.byte_pairs_by_hand`; other arguments are unused."""
    return train_byte_pairs_by_hand(input_path, vocab_size, special_tokens)


def _call(make: Callable[[], nn.Module], weights: Mapping[str, Tensor], *inputs: Tensor, **options: Any) -> Tensor:
    """Run a module on given weights; gradients reach them, and no random numbers are drawn for weights of its own."""
    with torch.device("meta"):
        module = make()
    module.to_empty(device=inputs[0].device)
    tensors = {**dict(module.named_buffers()), **weights}
    return torch.func.functional_call(module, tensors, inputs, options, strict=True)


def _attend(
    config: ModelConfig, projections: tuple[Tensor, ...], in_features: Tensor, token_positions: Tensor | None
) -> Tensor:
    names = ("q", "k", "v", "output")
    named = {f"layers.0.attn.{name}_proj.weight": weight for name, weight in zip(names, projections, strict=True)}
    ours = _without("blocks.0.attention.", to_ours(named, CS336, config))
    batch, length = in_features.shape[:-2], in_features.shape[-2]
    positions = token_positions
    if positions is not None and positions.ndim > 1:
        positions = positions.expand(*batch, length).reshape(-1, length)
    elif positions is not None:
        positions = positions[None]
    flat = in_features.reshape(-1, *in_features.shape[-2:])
    out = _call(lambda: CausalMultiHeadAttention(config), ours, flat, positions=positions)
    return out.view(*batch, length, config.d_model)


def _without(prefix: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): weight for name, weight in weights.items()}
