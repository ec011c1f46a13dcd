"""What other people call our weights: one table per family, read both ways.

A row pairs an address of ours with the names a family uses for it. Three things differ besides names:

    fused      ours is one matrix, rows queries | keys | values; most families store three
    pair order a rotary embedding turns features in pairs: ours are the halves of a head (i, i + d_head/2), some
               families pair neighbours (2i, 2i + 1). Reordering the rows that make queries and keys (weights, biases
               and q/k norm weights) alike changes no score, because a score sums over all features of a head.
    transposed ours are (d_out, d_in); GPT-2's Conv1D stores (d_in, d_out)

The names of sizes in other people's config.json stand here too, and nowhere else.

In: tensors by name.  Out: the same tensors by the other names.  Used by: cs336, families.  Read next: families.py.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig

PairOrder = Literal["halves", "neighbours"]


@dataclass(frozen=True)
class Row:
    """One address of ours, and the one name, or the three (query, key, value), that a family has for it."""

    ours: str
    theirs: tuple[str, ...]
    transposed: bool = False

    def __init__(self, ours: str, *theirs: str, transposed: bool = False) -> None:
        object.__setattr__(self, "ours", ours)
        object.__setattr__(self, "theirs", theirs)
        object.__setattr__(self, "transposed", transposed)


@dataclass(frozen=True, kw_only=True)
class Family:
    """A way of naming and ordering weights."""

    name: str
    """What the family is called in messages."""
    pair_order: PairOrder
    """Which features of a head its rotary embedding turns together."""
    rows: tuple[Row, ...]
    """The table; {i} is the number of a layer."""


CS336 = Family(
    name="CS336 assignment 1",
    pair_order="neighbours",
    rows=(
        Row("token_embedding.weight", "token_embeddings.weight"),
        Row("blocks.{i}.attention_norm.weight", "layers.{i}.ln1.weight"),
        Row(
            "blocks.{i}.attention.query_key_value.weight",
            "layers.{i}.attn.q_proj.weight",
            "layers.{i}.attn.k_proj.weight",
            "layers.{i}.attn.v_proj.weight",
        ),
        Row("blocks.{i}.attention.output.weight", "layers.{i}.attn.output_proj.weight"),
        Row("blocks.{i}.feed_forward_norm.weight", "layers.{i}.ln2.weight"),
        Row("blocks.{i}.feed_forward.gate.weight", "layers.{i}.ffn.w1.weight"),
        Row("blocks.{i}.feed_forward.up.weight", "layers.{i}.ffn.w3.weight"),
        Row("blocks.{i}.feed_forward.down.weight", "layers.{i}.ffn.w2.weight"),
        Row("final_norm.weight", "ln_final.weight"),
        Row("lm_head.weight", "lm_head.weight"),
    ),
)

LLAMA_SIZES = {
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
}
"""Our sizes, and what Llama's config.json and those like it call them."""

GPT2_SIZES = {
    "vocab_size": "vocab_size",
    "context_length": "n_positions",
    "d_model": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
}
"""The same in GPT-2's."""

NANOGPT_SIZES = {
    "vocab_size": "vocab_size",
    "context_length": "block_size",
    "d_model": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
}
"""The same in a checkpoint of nanoGPT, under model_args."""

COURSE_SIZES = {name: name for name in ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff")}
"""The same in CS336, where the arguments of the model are called as here."""

BOOK_SIZES = {
    "vocab_size": "vocab_size",
    "context_length": "context_length",
    "d_model": "emb_dim",
    "num_layers": "n_layers",
    "num_heads": "n_heads",
}
BOOK_CHOICES = {
    "d_ff": "hidden_dim",
    "num_kv_heads": "n_kv_groups",
    "d_head": "head_dim",
    "rope_theta": "rope_base",
}
BOOK_SCALING = {
    "factor": "factor",
    "low_frequency_factor": "low_freq_factor",
    "high_frequency_factor": "high_freq_factor",
    "original_context_length": "original_context_length",
}
"""The same in the dictionaries of LLMs-from-scratch."""


def to_ours(
    theirs: Mapping[str, Tensor], family: Family, config: ModelConfig, *, strict: bool = True
) -> dict[str, Tensor]:
    """Weights under our names, fused and in our pair order.

    Args:
        theirs: A family's weights. What a model does not have (a bias, a tied head) is simply absent.
        family: Its table.
        config: The model's sizes.
        strict: Refuse names that the table does not know, rather than leave them out.

    Raises:
        ModelFileError: an unknown name, or a query matrix without its key and value.

    Example:
        >>> config = ModelConfig(vocab_size=5, d_model=4, num_heads=1, num_layers=1)
        >>> list(to_ours({"ln_final.weight": torch.ones(4)}, CS336, config))
        ['final_norm.weight']
    """
    ours = dict(one_by_one(theirs, family, config))
    known = {name for names in names_by_address(family, config.num_layers).values() for name in names}
    unknown = sorted(set(theirs) - known)
    if strict and unknown:
        raise ModelFileError(
            f"weights as {family.name} names them",
            came=f"{len(unknown)} others, the first {unknown[0]}",
            remedy="check that the file belongs to this family and that num_layers is right",
        )
    return ours


def one_by_one(theirs: Mapping[str, Tensor], family: Family, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    """The same as they are read, each with our name: a file's tensors need never be in memory together.

    Example:
        >>> config = ModelConfig(vocab_size=5, d_model=4, num_heads=1, num_layers=1)
        >>> next(one_by_one({"ln_final.weight": torch.ones(4)}, CS336, config))[0]
        'final_norm.weight'
    """
    for our_name, their_names, row in addresses(family, config.num_layers):
        missing = [name for name in their_names if name not in theirs]
        if len(missing) == len(their_names):
            continue
        if missing:
            raise ModelFileError(
                f"{' and '.join(their_names)} together", came=f"no {missing[0]}", remedy="use a complete file"
            )
        parts = [theirs[name].T if row.transposed else theirs[name] for name in their_names]
        fused = torch.cat(parts) if len(parts) > 1 else parts[0]
        yield our_name, _reordered(our_name, fused, family, config, neighbours_to_halves)


def to_theirs(ours: Mapping[str, Tensor], family: Family, config: ModelConfig) -> dict[str, Tensor]:
    """The inverse of `to_ours`: weights under a family's names, taken apart and in its pair order.

    Args:
        ours: Weights by our addresses.
        family: The table.
        config: The model's sizes.

    Raises:
        ModelFileError: an address that the family has no name for.

    Example:
        >>> config = ModelConfig(vocab_size=5, d_model=4, num_heads=1, num_layers=1)
        >>> list(to_theirs({"blocks.0.attention.query_key_value.weight": torch.ones(12, 4)}, CS336, config))
        ['layers.0.attn.q_proj.weight', 'layers.0.attn.k_proj.weight', 'layers.0.attn.v_proj.weight']
    """
    theirs, known = {}, set()
    for our_name, their_names, row in addresses(family, config.num_layers):
        if our_name not in ours:
            continue
        known.add(our_name)
        fused = _reordered(our_name, ours[our_name], family, config, halves_to_neighbours)
        parts = fused.split(slices_of(config)) if len(their_names) == 3 else (fused,)
        theirs.update(zip(their_names, (part.T if row.transposed else part for part in parts), strict=True))
    unknown = sorted(set(ours) - known)
    if unknown:
        raise ModelFileError(
            f"parts that {family.name} has",
            came=f"{len(unknown)} it has no name for, the first {unknown[0]}",
            remedy="export to another family",
        )
    return theirs


def neighbours_to_halves(x: Tensor, d_head: int, dim: int = 0) -> Tensor:
    """Reorder an axis of features, head by head, from pairs of neighbours to halves of a head.

    Args:
        x: A weight, a bias or a norm weight (dim 0), or queries and keys themselves (dim -1).
        d_head: Width of a head; the axis holds one head or several.
        dim: The axis.

    Example:
        >>> neighbours_to_halves(torch.tensor([0, 1, 2, 3, 4, 5]), d_head=6)
        tensor([0, 2, 4, 1, 3, 5])
    """
    x = x.movedim(dim, 0)
    return x.unflatten(0, (-1, d_head // 2, 2)).transpose(1, 2).flatten(0, 2).movedim(0, dim)


def halves_to_neighbours(x: Tensor, d_head: int, dim: int = 0) -> Tensor:
    """The inverse of `neighbours_to_halves`.

    Example:
        >>> halves_to_neighbours(torch.tensor([0, 2, 4, 1, 3, 5]), d_head=6)
        tensor([0, 1, 2, 3, 4, 5])
    """
    x = x.movedim(dim, 0)
    return x.unflatten(0, (-1, 2, d_head // 2)).transpose(1, 2).flatten(0, 2).movedim(0, dim)


def names_by_address(family: Family, num_layers: int) -> dict[str, tuple[str, ...]]:
    """What a family calls each of our addresses.

    Example:
        >>> names_by_address(CS336, num_layers=1)["blocks.0.feed_forward.up.weight"]
        ('layers.0.ffn.w3.weight',)
    """
    return {ours: theirs for ours, theirs, _ in addresses(family, num_layers)}


def addresses(family: Family, num_layers: int) -> Iterator[tuple[str, tuple[str, ...], Row]]:
    """The table with every layer's number filled in: our name, theirs, the row."""
    for row in family.rows:
        for i in range(num_layers) if "{i}" in row.ours else range(1):
            yield row.ours.replace("{i}", str(i)), tuple(name.replace("{i}", str(i)) for name in row.theirs), row


def slices_of(config: ModelConfig) -> tuple[int, int, int]:
    """Rows of queries, keys and values in our fused matrix."""
    keys = config.num_kv_heads * config.d_head
    return (config.num_heads * config.d_head, keys, keys)


def _reordered(
    our_name: str, tensor: Tensor, family: Family, config: ModelConfig, reorder: Callable[[Tensor, int], Tensor]
) -> Tensor:
    """`tensor` with the features that a rotary embedding turns in the other order, where the two orders differ."""
    if family.pair_order == "halves" or config.positions != "rope":
        return tensor
    if ".query_key_value." in our_name:
        query, key, value = tensor.split(slices_of(config))
        return torch.cat([reorder(query, config.d_head), reorder(key, config.d_head), value])
    if ".query_norm." in our_name or ".key_norm." in our_name:
        return reorder(tensor, config.d_head)
    return tensor
