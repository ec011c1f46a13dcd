"""Training with eyes: what every module's weights, gradients, updates and outputs look like at a step.

    before the step   weights_of(model)                    a copy, to see how far the update moves
    after it          measure_health(model, batch, ...)    gradients lie at the weights still; a few rows, once more,
                                                           eagerly, with torch's own hooks

Nothing of it is inside the compiled step, and nothing is changed: no gradient, no random stream, no mode.

In: a model after a step, the step's batch.  Out: a `ModuleHealth`.  Used by: eyes.  Read next: outliers.py.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from pellucid.nn import CausalMultiHeadAttention, TransformerLM, attention_weights, causal_mask
from pellucid.train.addresses import addresses, tensors_in
from pellucid.train.evaluation import reading
from pellucid.train.events import ModuleHealth

TOKENS = 512  # of the batch are enough for means over them; ten looks cost 0.2 % of a default run (docs/log.md)
QUERIES = 256  # of a row whose attention is looked at: the weights of a long row would fill the memory
DIGITS = 4  # of each figure, which is for people and for comparing, and is written for every module


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights by name, to be taken before the step whose update `measure_health` shall see."""
    copies = {weight: weight.detach().clone() for weight in model.parameters()}
    return {name: copies[weight] for name, weight in model.named_parameters(remove_duplicate=False)}  # tied: two names


def measure_health(
    model: TransformerLM, batch: tuple[Tensor, ...], *, step: int, before: Mapping[str, Tensor] | None = None
) -> ModuleHealth:
    """Look at every module once.

    Meant for the time after a step and before the next one forgets the gradients. Where ranks share a model that is
    cut, all must call it. Gradients are as the optimizer saw them: clipped.

    Args:
        model: Is left as it was, its mode included.
        batch: Inputs and targets, and for packed documents their ids and positions; a few rows are used.
        step: Its number.
        before: From `weights_of`. Without it nothing is said of updates.

    Returns:
        Root mean squares by module and quantity; see `ModuleHealth`.
    """
    begun = time.monotonic()
    weighty = [(address, module) for address, module in addresses(model) if any(True for _ in module.parameters())]
    found = {address: _of_weights(module, address, before) for address, module in weighty}
    for address, figures in _of_activations(model, weighty, batch).items():
        found[address].update(figures)
    modules = {address: _as_numbers(figures) for address, figures in found.items() if figures}
    return ModuleHealth(step=step, modules=modules, seconds=time.monotonic() - begun)


def _of_weights(module: nn.Module, address: str, before: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
    """Of the weights that are a module's own."""
    own = dict(module.named_parameters(recurse=False))
    if not own:
        return {}
    figures = {"weight": _rms(own.values())}
    gradients = [weight.grad for weight in own.values() if weight.grad is not None]
    if gradients:
        figures["gradient"] = _rms(gradients)
    if before is not None:
        earlier = [before[f"{address}.{name}"] for name in own]
        moved = [weight.detach() - old for weight, old in zip(own.values(), earlier, strict=True)]
        figures["update_ratio"] = _rms(moved) / _rms(earlier)
    return figures


def _of_activations(
    model: TransformerLM, modules: list[tuple[str, nn.Module]], batch: tuple[Tensor, ...]
) -> dict[str, dict[str, Tensor]]:
    """Of what each module gives, and of attention."""
    found: dict[str, dict[str, Tensor]] = {}

    def watch(address: str) -> Callable[..., None]:
        def after_forward(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
            figures = found.setdefault(address, {})
            for tensor in tensors_in(output):
                figures["activation"] = _rms([tensor])
            if isinstance(module, CausalMultiHeadAttention):
                entropy, ceiling = attention_entropy(module, given[0], named.get("positions"), named.get("mask"))
                figures |= {"entropy": entropy, "entropy_ceiling": ceiling}
                found[address] = figures

        return after_forward

    device = next(model.parameters()).device
    rows = max(1, TOKENS // batch[0].shape[1])
    inputs, _, *packed = (part[:rows].to(device) for part in batch)
    packed = dict(zip(("document_ids", "positions"), packed, strict=False))
    with reading(model), ExitStack() as hooks:
        for address, module in modules:
            hooks.enter_context(module.register_forward_hook(watch(address), with_kwargs=True))
        model(inputs, **packed)
    return found


@torch.no_grad()
def attention_entropy(
    attention: CausalMultiHeadAttention,
    x: Float[Tensor, "batch query d_model"],
    positions: Int[Tensor, "#batch query"] | None = None,
    mask: Bool[Tensor, "#batch query key"] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """How widely attention looks: the mean entropy of its weights, in nats, and what it would be if all were equal.

    entropy = mean over rows, heads, queries of  - sum_k w_k log w_k        ceiling = mean of log(keys a query may see)

    The weights are computed anew with the functions the model computes with. Of long rows, evenly spaced queries stand
    for all.

    Args:
        attention: Of a block.
        x: What it was given.
        positions: As in its forward.
        mask: As in its forward.

    Example:
        >>> from pellucid.model_config import ModelConfig
        >>> attention = CausalMultiHeadAttention(ModelConfig(d_model=64, num_heads=4))
        >>> entropy, ceiling = attention_entropy(attention, torch.zeros(1, 2, 64))  # all scores equal
        >>> [round(number.item(), 4) for number in (entropy, ceiling)]  # the first query sees 1 key, the second 2
        [0.3466, 0.3466]
    """
    query, key, _ = attention.project(x, positions)
    length = x.shape[-2]
    every = -(-length // QUERIES)
    places = torch.arange(every - 1, length, every, device=x.device)
    seen = causal_mask(places, length, attention.window) if mask is None else mask[..., places, :].unsqueeze(-3)
    weights = attention_weights(query[..., places, :], attention.share_keys(key), seen, scale=attention.scale)
    ceiling = seen.sum(-1).clamp(min=1).log().float().mean()
    return torch.special.entr(weights).sum(-1).mean(), ceiling


def _rms(tensors: Iterable[Tensor]) -> Tensor:
    """Root mean square of all numbers together, in float32 or wider."""
    squares, count = [], 0
    for tensor in tensors:
        wide = tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))
        norm = torch.linalg.vector_norm(wide)
        squares.append((norm.full_tensor() if isinstance(norm, DTensor) else norm).square())
        count += tensor.numel()
    return (torch.stack(squares).sum() / max(count, 1)).sqrt()


def _as_numbers(figures: dict[str, Tensor]) -> dict[str, float | None]:
    """Figures that are not finite, and ratios to weights of 0, become None: JSON has no word for them."""
    numbers = ((name, float(figure)) for name, figure in figures.items())
    return {name: float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None for name, number in numbers}
