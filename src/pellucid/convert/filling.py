"""Weights from somebody's file into a model of ours: seen to be the model's, then read once, each where it belongs.

In: weights by the names a family has for them.  Out: a filled model, or the same weights under our names.
Used by: foreign_model.  Read next: foreign_model.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from pellucid.checkpoint import in_memory, model_outline, refuse_foreign_weights, refuse_what_is_no_number
from pellucid.convert.names import Family, addresses, names_by_address, neighbours_to_halves, one_by_one, slices_of
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

HEAD, EMBEDDING = "lm_head.weight", "token_embedding.weight"


@runtime_checkable
class Weights(Protocol):
    """Tensors in somebody's file, by their names there."""

    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object) -> bool: ...

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        ...

    def number_type(self, name: str) -> torch.dtype:
        """The number type in which it is kept, or the one that a quantised tensor becomes."""
        ...

    def read(self, name: str) -> Tensor:
        """A tensor of that type, in memory of its own."""
        ...

    def read_into(self, name: str, target: Tensor) -> None:
        """The same into a tensor of the same shape, which may be of another type."""
        ...


class HeldWeights(dict[str, Tensor]):
    """Weights that are in memory already."""

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return tuple(self[name].shape)

    def number_type(self, name: str) -> torch.dtype:
        """A tensor's number type."""
        return self[name].dtype

    def read(self, name: str) -> Tensor:
        """The tensor itself."""
        return self[name]

    def read_into(self, name: str, target: Tensor) -> None:
        """Copy it."""
        target.copy_(self[name])


def refuse_others(
    weights: Weights, family: Family, config: ModelConfig, ours: Mapping[str, Tensor], told_by: str
) -> None:
    """See that the weights are those of the model: all of them, no others, of the right shapes.

    Args:
        weights: A file's.
        family: The table of names.
        config: What the model is said to be.
        ours: A model's `state_dict()`.
        told_by: What says what it is, for the message.

    Raises:
        ModelFileError: naming what is missing, unknown, or of another shape.
    """
    expected: dict[str, tuple[int, ...]] = {}
    optional: tuple[str, ...] = ()
    for our_name, names, row in addresses(family, config.num_layers):
        if our_name not in ours:
            continue
        whole = tuple(ours[our_name].shape)
        parts = [(rows, *whole[1:]) for rows in slices_of(config)] if len(names) == 3 else [whole]
        expected |= {name: part[::-1] if row.transposed else part for name, part in zip(names, parts, strict=True)}
        optional = names if our_name == HEAD and config.tie_embeddings else optional
    unnamed = ours.keys() - names_by_address(family, config.num_layers).keys()
    problems = [f"{name} has no name there" for name in unnamed]
    problems += [f"{name} is missing" for name in expected if name not in weights and name not in optional]
    problems += [f"{name} is unknown" for name in weights if name not in expected]
    for name in weights:
        if name in expected and weights.shape(name) != expected[name]:
            problems.append(f"{name} has shape {weights.shape(name)}, not {expected[name]}")
    refuse_foreign_weights(problems, f"the weights of the {family.name} model that {told_by} describes")


def number_type_of(weights: Weights) -> torch.dtype:
    """The type a model needs to hold them: bfloat16 if all are, else float32.

    In float16 scores overflow (65,504), so it is widened, which changes no number.

    Raises:
        ModelFileError: naming a tensor of whole numbers: something has quantised it, in a way that is not known here.
    """
    types = set()
    for name in weights:
        types.add(kind := weights.number_type(name))
        if not kind.is_floating_point or kind == torch.float64:
            raise ModelFileError(
                "weights stored as float32, bfloat16 or float16",
                came=f"{name} as {str(kind).removeprefix('torch.')}",
                remedy="use a release of the model that is not quantised",
            )
    return torch.bfloat16 if types == {torch.bfloat16} else torch.float32


@torch.no_grad()
def filled(
    weights: Weights, family: Family, config: ModelConfig, *, dtype: torch.dtype | None = None, told_by: str
) -> TransformerLM:
    """A model with these weights, in evaluation mode; nothing is in memory twice but what has to be turned.

    Args:
        weights: A file's.
        family: The table of names.
        config: What the model is said to be.
        dtype: The number type it is to have. Default: bfloat16 if all weights are kept in it, else float32.
        told_by: What says what it is, for messages.

    Raises:
        ModelFileError: for weights that are not the model's, and for a tied head that differs from the embedding.
    """
    kept = number_type_of(weights)
    outline = model_outline(config, sum(1 for _ in weights))
    refuse_others(weights, family, config, outline.state_dict(), told_by)
    model = in_memory(outline, dtype or kept)
    targets = model.state_dict(keep_vars=True)
    for ours, names, row in addresses(family, config.num_layers):
        there = [name for name in names if name in weights]
        if not there:
            continue
        target = targets[ours]
        if config.tie_embeddings and ours == HEAD:  # the table has the embedding first
            _require_twin(weights.read(names[0]).to(target.dtype), target)
            continue
        parts = target.split(slices_of(config)) if len(names) == 3 else (target,)
        for number, (name, part) in enumerate(zip(names, parts, strict=True)):
            turned = family.pair_order == "neighbours" and config.positions == "rope"
            if row.transposed:
                part.copy_(weights.read(name).T)
            elif turned and ((len(names) == 3 and number < 2) or ".query_norm." in ours or ".key_norm." in ours):
                part.copy_(neighbours_to_halves(weights.read(name), config.d_head))
            else:
                weights.read_into(name, part)
        refuse_what_is_no_number(target, f"{' and '.join(names)} of the model that {told_by} describes")
    return model.eval()


def as_stored(weights: Weights, family: Family, config: ModelConfig, *, told_by: str) -> dict[str, Tensor]:
    """The weights under our names, each in the number type it is kept in; a tied head is left out.

    Raises:
        ModelFileError: as for `filled`.
    """
    number_type_of(weights)
    outline = model_outline(config, sum(1 for _ in weights))
    refuse_others(weights, family, config, outline.state_dict(), told_by)
    tensors = dict(one_by_one(_ByName(weights), family, config))
    if config.tie_embeddings and HEAD in tensors:
        _require_twin(tensors.pop(HEAD), tensors[EMBEDDING])
    return tensors


class _ByName(dict[str, Any]):
    def __init__(self, weights: Weights) -> None:
        super().__init__(dict.fromkeys(weights))
        self._weights = weights

    def __getitem__(self, name: str) -> Tensor:
        return self._weights.read(name)


def _require_twin(head: Tensor, embedding: Tensor) -> None:
    if not torch.equal(head, embedding):
        raise ModelFileError(
            "a head equal to the embedding, as tie_word_embeddings says in config.json",
            came="an lm_head.weight of its own",
            remedy="set tie_word_embeddings to false if the head is meant",
        )
