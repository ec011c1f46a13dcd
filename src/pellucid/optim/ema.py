"""A running mean of the weights: smoother than the weights themselves, which each batch pulls its own way.

    step      weights ──update──▶ average      share of the new: 1, then about 1/2, 1/3, ... down to 1 - decay
    evaluate  with average.swapped(model):     the model computes with the mean, and afterwards has its own back

In: a model after each step.  Out: averages by name, or put into the model for a while.  Used by: train.
Read next: clipping.py.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from pellucid.errors import ConfigError, RunFolderError
from pellucid.optim.sharded import cut_like, here

UPDATES = "updates"  # beside the names of parameters, which all have a dot in them or are none of ours


class WeightAverage:
    """The exponential moving average of a model's trainable weights.

    average = average + share_t (weight - average),  share_t = (1 - decay) / (1 - decay^t)

    The share is that of a mean without a past: 1 at the first update, so that the initial weights leave no trace, then
    near 1/t, and in the end 1 - decay. A tied weight is one parameter and has one average.

    Call `update` after every step that moved the weights, not after one that was skipped.

    Args:
        model: Whose weights are averaged. What is wrapped around it must not change the names of its parameters.
        decay: What of the average is kept at each update in the end; it spans about 1 / (1 - decay) updates.

    Raises:
        ConfigError: a decay outside its range.

    Source: Polyak & Juditsky 1992; with the correction of its start: Kingma & Ba 2015, section 7.2. Others keep the
        initial weights in the mean, or let the decay itself rise as (1 + t) / (10 + t).

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> average = WeightAverage(model, decay=0.5)
        >>> for weight in (3.0, 6.0):
        ...     _ = nn.init.constant_(model.weight, weight)
        ...     average.update()
        >>> with average.swapped():
        ...     print(model.weight.item())  # (0.5 * 3 + 1 * 6) / 1.5
        5.0
        >>> model.weight.item()
        6.0
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        if not 0 <= decay < 1:
            raise ConfigError(
                "a decay of the weights' average from 0 up to, not including, 1",
                came=f"{decay}",
                remedy="choose one such as 0.99, which averages about 100 steps",
            )
        self.decay, self.updates, self.is_swapped = decay, 0, False
        self.weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.averages = {name: _wide_copy(weight) for name, weight in self.weights.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights as they are now into the mean."""
        assert not self.is_swapped, "the model holds the average itself"
        if not self.averages:
            return
        self.updates += 1
        share = (1 - self.decay) / (1 - self.decay**self.updates)
        for average, weight in zip(self.averages.values(), self.weights.values(), strict=True):
            here(average).lerp_(here(weight).to(average.dtype), share)

    @contextmanager
    @torch.no_grad()
    def swapped(self) -> Generator[None]:
        """The model computes with the averages while the block lasts; afterwards it has its own weights, bit for bit.

        Before the first update the averages are the weights that the model had at the start. Weights are copied where
        they lie, so that whoever holds on to them (an optimizer, a compiled step, a sharding wrapper) sees both.
        """
        assert not self.is_swapped, "the model holds the average already"
        kept = [weight.detach().clone() for weight in self.weights.values()]
        self._put(list(self.averages.values()))
        self.is_swapped = True
        try:
            yield
        finally:
            self._put(kept)
            self.is_swapped = False

    def state_dict(self) -> dict[str, Tensor]:
        """The averages by name, and the number of updates. Not copied."""
        return {**self.averages, UPDATES: torch.tensor(self.updates)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` gave; copied.

        Raises:
            RunFolderError: if it is of another model.
        """
        wanted, there = {*self.averages, UPDATES}, set(state)
        shapes = [name for name in sorted(wanted & there - {UPDATES}) if state[name].shape != self.averages[name].shape]
        if wanted != there or shapes:
            odd = [*sorted(wanted ^ there), *shapes]
            raise RunFolderError(
                "the average of this very model's weights",
                came=f"one that differs in {', '.join(odd[:3])}",  # three fit a sentence
                remedy="resume with the configuration that the run was started with",
            )
        self.updates = int(state[UPDATES])
        with torch.no_grad():
            for name, average in self.averages.items():
                average.copy_(cut_like(state[name].to(average.device), average))

    def _put(self, values: list[Tensor]) -> None:
        with torch.no_grad():
            for weight, value in zip(self.weights.values(), values, strict=True):
                weight.copy_(value)


def _wide_copy(weight: Tensor) -> Tensor:
    """In float32 at least: in bfloat16 a share below 1/256 of a difference would be lost."""
    return weight.detach().to(torch.promote_types(weight.dtype, torch.float32), copy=True)
