"""Low-rank factors beside frozen maps: what fine-tuning adds to a model, a hundredth of its numbers.

    y = W x + b + scaling · B A x            W (d_out, d_in) stays as it is
                                             A (rank, d_in)   narrows: random at first
                                             B (d_out, rank)  widens: zeros at first, so that nothing is changed yet
                                             scaling = alpha / rank

Queries, keys and values are one matrix here, and three maps in truth; each has factors of its own, which are added to
its own rows. Merged, W + scaling · B A is an ordinary model again, for whoever asks for one.

In: a model.  Out: the same model with factors; its merged weights.  Used by: train.  Read next: train/.

Source: Hu et al. 2021, "LoRA", equation 3; A is drawn as in its reference code and in PEFT. Factors beside every map,
and ten times the rate: Schulman et al. 2025, "LoRA Without Regret".
"""

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pellucid.errors import ConfigError, ModelFileError
from pellucid.nn import CausalMultiHeadAttention, Linear, TransformerLM
from pellucid.training_config import LORA_TARGETS

FACTORS = ".factors."
"""Stands in the names of all parameters that are factors, and of no other."""


class LowRank(nn.Module):
    """B A x.

    Args:
        d_in: Features in.
        d_out: Features out.
        rank: Features between.

    Example:
        >>> float(LowRank(4, 3, rank=2)(torch.ones(4)).abs().max())
        0.0
    """

    def __init__(self, d_in: int, d_out: int, rank: int) -> None:
        super().__init__()
        self.narrow = nn.Parameter(torch.empty(rank, d_in))
        self.widen = nn.Parameter(torch.zeros(d_out, rank))
        bound = 1 / math.sqrt(d_in)
        nn.init.uniform_(self.narrow, -bound, bound)

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Narrow, widen."""
        narrowed: Float[Tensor, "*batch rank"] = x @ self.narrow.T
        return narrowed @ self.widen.T


class AdaptedLinear(Linear):
    """A frozen linear map, with factors beside some of its slices.

    Args:
        linear: The map; its weight and bias are taken over, not copied.
        slices: The maps that lie above one another in it: names, and rows of each.
        targets: The names of those that get factors.
        rank: Of the factors.
        alpha: Their product is multiplied by alpha / rank.

    Example:
        >>> adapted = AdaptedLinear(Linear(4, 6), {"query": 4, "key": 2}, ["key"], rank=1, alpha=2.0)
        >>> [name for name, _ in adapted.named_parameters()]
        ['weight', 'factors.key.narrow', 'factors.key.widen']
    """

    def __init__(
        self, linear: Linear, slices: Mapping[str, int], targets: Sequence[str], *, rank: int, alpha: float
    ) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = linear.weight, linear.bias
        self.slices, self.scaling, self.is_merged = dict(slices), alpha / rank, False
        d_in = linear.weight.shape[1]
        chosen = {name: LowRank(d_in, rows, rank) for name, rows in slices.items() if name in targets}
        self.factors = nn.ModuleDict(chosen)

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Map the last axis, and add what the factors make of it."""
        y = super().forward(x)
        if self.is_merged:
            return y
        parts = [self.factors[name](x) if name in self.factors else None for name in self.slices]
        rows = zip(parts, self.slices.values(), strict=True)
        added = torch.cat([y.new_zeros(*y.shape[:-1], n) if part is None else part for part, n in rows], dim=-1)
        return y + self.scaling * added.to(y.dtype)

    @torch.no_grad()
    def merged_weight(
        self, weight: Float[Tensor, "d_out d_in"], factors: Mapping[str, Tensor]
    ) -> Float[Tensor, "d_out d_in"]:
        """W + scaling · B A.

        Args:
            weight: W.
            factors: A and B of each slice that has them, as query.narrow and query.widen.
        """
        merged = weight.clone()
        for name, rows in zip(self.slices, merged.split(tuple(self.slices.values())), strict=True):
            if name in self.factors:
                rows += self.scaling * (factors[f"{name}.widen"] @ factors[f"{name}.narrow"])
        return merged


def add_factors(
    model: TransformerLM,
    *,
    rank: int,
    alpha: float | None = None,
    targets: Sequence[str] = (),
    seed: int = 0,
    train_vocabulary: bool = False,
) -> TransformerLM:
    """Freeze a model and put factors beside its maps, in place.

    Args:
        model: Its weights stay as they are.
        rank: Of the factors.
        alpha: See `AdaptedLinear`. Default: 2 rank.
        targets: Which maps, of `LORA_TARGETS`. Default: all that there are.
        seed: Draws A.
        train_vocabulary: Whether the embedding and the head are trained too, whole: new tokens need it.

    Raises:
        ConfigError: if a target is not in this model, or the rank is larger than a map.

    Example:
        >>> from pellucid.model_config import ModelConfig
        >>> model = TransformerLM(ModelConfig(vocab_size=9, d_model=64, num_heads=4, num_layers=1))
        >>> before = model(torch.tensor([[1, 2]]))
        >>> torch.equal(add_factors(model, rank=2)(torch.tensor([[1, 2]])), before)
        True
    """
    model.requires_grad_(False)
    model.token_embedding.requires_grad_(train_vocabulary)
    model.lm_head.requires_grad_(train_vocabulary)
    found: set[str] = set()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for owner, attribute, slices in _maps(model):
            chosen = [name for name in slices if not targets or name in targets]
            found.update(chosen)
            linear = getattr(owner, attribute)
            smallest = min(linear.weight.shape[1], *slices.values())
            if chosen and rank > smallest:
                raise ConfigError(
                    f"factors of a rank of at most {smallest}, as many rows as {chosen[0]} has",
                    came=f"--lora {rank}",
                    remedy="choose a smaller rank; 8 to 64 are usual",
                )
            if chosen:
                adapted = AdaptedLinear(linear, slices, chosen, rank=rank, alpha=2.0 * rank if alpha is None else alpha)
                setattr(owner, attribute, adapted.to(linear.weight.device))
    if missing := set(targets) - found or (set() if found else set(LORA_TARGETS)):
        raise ConfigError(
            f"targets among the maps of this model: {', '.join(sorted(found)) or 'it has none'}",
            came=", ".join(sorted(missing)),
            remedy="leave them out",
        )
    return model


def adapted_maps(model: nn.Module) -> Iterator[tuple[str, AdaptedLinear]]:
    """All maps of a model with factors beside them, by their addresses."""
    for address, module in model.named_modules():
        if isinstance(module, AdaptedLinear):
            yield address, module


def is_adapted(model: nn.Module) -> bool:
    """Whether a model has factors."""
    return any(True for _ in adapted_maps(model))


def trained_state(model: nn.Module) -> dict[str, Tensor]:
    """What of a model is trained, by name; a tied weight under both its names."""
    trained = {name for name, weight in model.named_parameters(remove_duplicate=False) if weight.requires_grad}
    return {name: tensor for name, tensor in model.state_dict(keep_vars=True).items() if name in trained}


@torch.no_grad()
def load_trained(model: nn.Module, tensors: Mapping[str, Tensor], source: object) -> None:
    """Give a model back what `trained_state` gave; a tied weight may stand there once.

    Raises:
        ModelFileError: if the tensors are of another model.
    """
    targets = trained_state(model)
    wanted, there = (
        {id(tensor) for tensor in targets.values()},
        {id(targets[name]) for name in tensors if name in targets},
    )
    odd = [name for name, tensor in tensors.items() if name not in targets or targets[name].shape != tensor.shape]
    if odd or wanted != there:
        raise ModelFileError(
            f"what is trained of this very model, in '{source}'",
            came=f"another's {odd[0]}" if odd else "a part of it",
            remedy="resume with the settings that the run was started with",
        )
    for name, tensor in tensors.items():
        targets[name].copy_(tensor)


def merged_state(model: nn.Module, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All weights of the model without factors that does what this one does, by the plain model's names.

    Args:
        model: Its frozen weights are read.
        trained: What else it has, as `trained_state` gave it, now or at another step.
    """
    maps = {f"{address}.weight": (address, module) for address, module in adapted_maps(model)}
    merged: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if FACTORS in name:
            continue
        merged[name] = trained.get(name, tensor)
        if name in maps:
            address, module = maps[name]
            prefix = f"{address}{FACTORS}"
            own = {key.removeprefix(prefix): value for key, value in trained.items() if key.startswith(prefix)}
            merged[name] = module.merged_weight(tensor, {key: value.detach() for key, value in own.items()})
    return merged


@contextmanager
@torch.no_grad()
def merged(model: nn.Module) -> Generator[None]:
    """The model computes with merged weights while the block lasts; afterwards it has its own back, bit for bit."""
    maps = list(adapted_maps(model))
    kept = [module.weight.detach().clone() for _, module in maps]
    for _, module in maps:
        factors = dict(module.factors.named_parameters())
        module.weight.copy_(module.merged_weight(module.weight, factors))
        module.is_merged = True
    try:
        yield
    finally:
        for (_, module), weight in zip(maps, kept, strict=True):
            module.weight.copy_(weight)
            module.is_merged = False


def _maps(model: TransformerLM) -> Iterator[tuple[nn.Module, str, dict[str, int]]]:
    """The maps inside blocks: whose attribute each is, its name there, and the maps that lie in it."""
    for block in model.blocks:
        attention, feed_forward = block.attention, cast(nn.Module, block.feed_forward)
        if isinstance(attention, CausalMultiHeadAttention):
            slices = dict(zip(("query", "key", "value"), attention.slices, strict=True))
            yield attention, "query_key_value", slices
            yield attention, "output", {"output": len(attention.output.weight)}
        for name in ("gate", "up", "down"):
            if isinstance(linear := getattr(feed_forward, name, None), Linear):
                yield feed_forward, name, {name: len(linear.weight)}
