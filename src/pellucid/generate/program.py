"""The program: a model's layers as a list of instructions, carried out by one compiled function (decode_step.cpp).

Reading one token through torch takes some thirty small operations a layer, each of which costs more to call than to
do. Here the same arithmetic is written down once, as instructions over a few buffers, and a step is one call:

    residual ─NORM─▶ normed ─LINEAR─▶ projected ─[NORM]─ROTATE─▶ cache ─ATTEND─▶ attended ─LINEAR─▶ part ─ADD─▶ residual

Weights stay where they are and as they are stored (float32, bfloat16 or eight bits); activations and sums are float32.
The oracle is the model's own forward pass, which also reads where a program cannot: elsewhere than on the CPU, without
a compiler, with parts of one's own.

In: a model; the newest tokens of a few sequences.  Out: logits after each.  Used by: reading.  Read next: reading.py.
"""

import ctypes
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.generate.native import native_library
from pellucid.nn import (
    GEGLU,
    CausalMultiHeadAttention,
    GeluFeedForward,
    KVCache,
    LayerNorm,
    Linear,
    Relu2FeedForward,
    RMSNorm,
    SiluFeedForward,
    SwiGLU,
    TransformerBlock,
    TransformerLM,
    gelu_tanh,
    rotary_frequencies,
)
from pellucid.quantize import Int8Linear

NORM, LINEAR, ROTATE, ATTEND, ACTIVATE, ADD = range(6)
SILU, GELU, GELU_TANH, RELU2 = range(4)
NUMBER_TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.int8: 2}
"""How the compiled function numbers instructions, activations and number types."""

RESIDUAL, NORMED, PROJECTED, ATTENDED, PART, GATE, UP, LOGITS = range(8)
"""The buffers, one row a token."""

MOST_TOKENS = 16
"""Tokens of one step. Of more, the products are quicker as the large ones of a forward pass."""

KNOWN_PARTS = {
    *(nn.Identity, nn.ModuleList, Linear, Int8Linear, RMSNorm, LayerNorm, CausalMultiHeadAttention, TransformerBlock),
    *(SwiGLU, GEGLU, GeluFeedForward, SiluFeedForward, Relu2FeedForward),
}


class Instruction(ctypes.Structure):
    """One instruction, field by field as decode_step.cpp declares it."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("kind", "source", "target", "other", "start", "width", "count")),
        *((name, ctypes.c_int32) for name in ("d_in", "d_out", "number_type", "choice", "layer", "window")),
        *((name, ctypes.c_int32) for name in ("num_heads", "num_kv_heads", "d_head")),
        *((name, ctypes.c_float) for name in ("epsilon", "scale")),
        *((name, ctypes.c_void_p) for name in ("weight", "weight_scale", "bias", "frequencies")),
    )


class _Buffer(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("width", ctypes.c_int64))


class _Cache(ctypes.Structure):
    _fields_ = (
        ("keys", ctypes.POINTER(ctypes.c_void_p)),
        ("values", ctypes.POINTER(ctypes.c_void_p)),
        ("capacity", ctypes.c_int64),
        ("number_type", ctypes.c_int32),
    )


class _Tokens(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int32), ("rows", ctypes.c_void_p), ("places", ctypes.c_void_p))


class Program:
    """The instructions of a model, and what they point at. Weights are read anew at every step, where they lie.

    Args:
        model: The model, for which `can_run` is true.

    Example:
        >>> from pellucid.model_config import ModelConfig
        >>> program = Program(TransformerLM(ModelConfig(d_model=64, num_heads=4, num_layers=1)))
        >>> [one.kind for one in program.instructions][:4] == [NORM, LINEAR, ROTATE, ATTEND]
        True
    """

    def __init__(self, model: TransformerLM) -> None:
        self.model, config = model, model.config
        self.instructions: list[Instruction] = []
        self._held: list[Tensor] = []
        d_query, d_key = config.num_heads * config.d_head, config.num_kv_heads * config.d_head
        widths = (config.d_model, config.d_model, d_query + 2 * d_key, d_query, config.d_model)
        widths += (config.d_ff, config.d_ff, config.vocab_size)
        self._buffers = [torch.zeros(MOST_TOKENS, width) for width in widths]
        for layer, block in enumerate(model.blocks):
            self._block(block, layer)
        self._linear(model.lm_head, self._norm(model.final_norm, RESIDUAL, NORMED), LOGITS)

        self._instructions = (Instruction * len(self.instructions))(*self.instructions)
        self._places = (_Buffer * len(widths))(*(_Buffer(one.data_ptr(), one.shape[1]) for one in self._buffers))

    @staticmethod
    def can_run(model: TransformerLM) -> bool:
        """Whether this machine has the function, and it knows all of the model's parts and number types."""
        tensors = [*model.parameters(), *model.buffers()]
        parts = [part for block in model.blocks for part in _parts(block)] + [model.final_norm, model.lm_head]
        return (
            type(model) is TransformerLM
            and all(one.device.type == "cpu" and one.dtype in NUMBER_TYPES for one in tensors)
            and all(type(one) in (nn.Parameter, Tensor) for one in tensors)  # and none is cut over several processes
            and all(type(part) in KNOWN_PARTS for part in parts)
            and not any(_is_watched(part) for part in (model, *parts))
            and native_library() is not None
        )

    def step(
        self, token_ids: Sequence[int], rows: Sequence[int], places: Sequence[int], cache: KVCache
    ) -> Float[Tensor, "query vocab"]:
        """Read tokens, at most `MOST_TOKENS`, and write their keys and values into the cache, which is not advanced.

        Args:
            token_ids: The tokens.
            rows: The row of the cache that each belongs to; tokens of one row in order, without a gap.
            places: Where each stands in its row.
            cache: What came before.

        Returns:
            The logits after each.
        """
        count = len(token_ids)
        row_ids, place_ids = torch.tensor(rows), torch.tensor(places)
        self._buffers[RESIDUAL][:count] = self.model.embed(torch.tensor(token_ids)[None], place_ids[None])[0]
        pointers, first = ctypes.c_void_p * len(cache.layers), cache.layers[0].keys
        keys = pointers(*(layer.keys.data_ptr() for layer in cache.layers))
        values = pointers(*(layer.values.data_ptr() for layer in cache.layers))
        kept = _Cache(keys, values, first.shape[2], NUMBER_TYPES[first.dtype])
        tokens = _Tokens(count, row_ids.data_ptr(), place_ids.data_ptr())
        native_library().pellucid_step(
            self._instructions,
            len(self.instructions),
            self._places,
            ctypes.byref(kept),
            ctypes.byref(tokens),
            torch.get_num_threads(),
        )
        return self.model.finish_logits(self._buffers[LOGITS][:count].clone())

    def _add(self, kind: int, source: int, target: int, *, other: int = -1, **fields: float | None) -> None:
        self.instructions.append(Instruction(kind=kind, source=source, target=target, other=other, **fields))

    def _hold(self, tensor: Tensor | None) -> int | None:
        """The address of a tensor that will live as long as the program."""
        if tensor is None:
            return None
        self._held.append(tensor.detach().contiguous())
        return self._held[-1].data_ptr()

    def _linear(self, linear: nn.Module, source: int, target: int) -> None:
        in_bytes = type(linear) is Int8Linear
        weight, scale = (linear.integers, linear.scale) if in_bytes else (linear.weight, None)
        self._add(
            LINEAR,
            source,
            target,
            d_out=weight.shape[0],
            d_in=weight.shape[1],
            number_type=NUMBER_TYPES[weight.dtype],
            weight=self._hold(weight),
            weight_scale=self._hold(scale),
            bias=None if linear.bias is None else self._hold(linear.bias.float()),
        )

    def _norm(
        self, norm: nn.Module | None, source: int, target: int, start: int = 0, width: int = 0, count: int = 1
    ) -> int:
        """Norm `count` stretches of a row, and say where the result is: where it was, if there is no norm."""
        if norm is None or type(norm) is nn.Identity:
            return source
        centred = type(norm) is LayerNorm
        weight = norm.weight.float() + (0.0 if centred else norm.offset)
        self._add(
            NORM,
            source,
            target,
            start=start,
            width=width or len(weight),
            count=count,
            choice=int(centred),
            epsilon=norm.epsilon,
            weight=self._hold(weight),
            bias=self._hold(norm.bias.float()) if centred and norm.bias is not None else None,
        )
        return target

    def _block(self, block: TransformerBlock, layer: int) -> None:
        def attend(source: int) -> None:
            self._attention(block.attention, layer, source)

        def feed_forward(source: int) -> None:
            self._feed_forward(block.feed_forward, source)

        self._branch(block.placement, attend, block.attention_norm, block.attention_output_norm)
        self._branch(block.placement, feed_forward, block.feed_forward_norm, block.feed_forward_output_norm)

    def _branch(
        self, placement: str, part: Callable[[int], None], norm: nn.Module | None, output_norm: nn.Module | None
    ) -> None:
        """What `TransformerBlock` does with one of its parts."""
        part(RESIDUAL if placement in ("post", "output") else self._norm(norm, RESIDUAL, NORMED))
        self._norm(output_norm, PART, PART)
        self._add(ADD, PART, RESIDUAL, width=self._buffers[RESIDUAL].shape[1])
        if placement == "post":
            self._norm(norm, RESIDUAL, RESIDUAL)

    def _attention(self, attention: CausalMultiHeadAttention, layer: int, source: int) -> None:
        sizes = {"num_heads": attention.num_heads, "num_kv_heads": attention.num_kv_heads, "d_head": attention.d_head}
        self._linear(attention.query_key_value, source, PROJECTED)
        d_query, d_key, _ = attention.slices
        heads = (attention.num_heads, attention.num_kv_heads) if attention.qk_norm == "head" else (1, 1)
        self._norm(attention.query_norm, PROJECTED, PROJECTED, 0, d_query // heads[0], heads[0])
        self._norm(attention.key_norm, PROJECTED, PROJECTED, d_query, d_key // heads[1], heads[1])
        rotary = attention.rotary
        self._add(
            ROTATE,
            PROJECTED,
            PROJECTED,
            width=attention.d_head,
            count=attention.num_heads + attention.num_kv_heads,
            layer=layer,
            frequencies=self._hold(rotary and rotary_frequencies(rotary.d_head, rotary.theta, rotary.scaling)),
            **sizes,
        )
        scale = attention.d_head**-0.5 if attention.scale is None else attention.scale
        self._add(ATTEND, PROJECTED, ATTENDED, layer=layer, window=attention.window or 0, scale=scale, **sizes)
        self._linear(attention.output, ATTENDED, PART)

    def _feed_forward(self, part: nn.Module, source: int) -> None:
        width = self._buffers[UP].shape[1]
        choice = {SwiGLU: SILU, SiluFeedForward: SILU, Relu2FeedForward: RELU2}.get(type(part), GELU)
        choice = GELU_TANH if part.activation is gelu_tanh else choice
        self._linear(part.up, source, UP)
        if type(part) in (SwiGLU, GEGLU):
            self._linear(part.gate, source, GATE)
            self._add(ACTIVATE, GATE, GATE, other=UP, width=width, choice=choice)
        else:
            self._add(ACTIVATE, UP, GATE, width=width, choice=choice)
        self._linear(part.down, GATE, PART)


def _parts(block: nn.Module) -> list[nn.Module]:
    """A block and all that it is made of, but for rotary positions, of which only the settings are needed."""
    return [part for name, part in block.named_modules() if not name.endswith("rotary")]


def _is_watched(part: nn.Module) -> bool:
    """Whether somebody sees what goes through a part, or has put another function in its place."""
    return bool(part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part))
