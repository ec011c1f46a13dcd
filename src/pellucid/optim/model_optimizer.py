"""One optimizer for a whole model: Muon for its matrices, AdamW for the rest, behind one object.

Its state is a flat mapping from names to tensors, so that it can be written as safetensors, and read by people.

In: a model with gradients.  Out: updated weights; state by parameter name.  Used by: train, checkpoint.
Read next: ema.py.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from pellucid.errors import RunFolderError
from pellucid.optim.ema import WeightAverage
from pellucid.optim.groups import ParameterGroup, parameter_groups
from pellucid.optim.muon import Muon
from pellucid.optim.sharded import cut_like
from pellucid.training_config import OptimizerConfig

FUSED_DEVICES = ("cpu", "cuda", "mps")  # where torch 2.13 has AdamW as one kernel


class ModelOptimizer:
    """Muon and AdamW, stepped, saved and scheduled as one.

    Args:
        groups: From `parameter_groups`.
        config: The settings that all groups share.

    Example:
        >>> model = nn.Linear(4, 2)
        >>> optimizer = build_optimizer(model, OptimizerConfig())
        >>> model(torch.ones(1, 4)).sum().backward()
        >>> optimizer.set_learning_rate(0.5)
        >>> optimizer.step()
        >>> sorted(optimizer.state_dict())
        ['bias/exp_avg', 'bias/exp_avg_sq', 'bias/step', 'weight/momentum']
        >>> optimizer.learning_rates()
        {'matrices': 0.01, 'vectors': 0.0015}
    """

    def __init__(self, groups: list[ParameterGroup], config: OptimizerConfig) -> None:
        self.names = {parameter: name for group in groups for name, parameter in group.parameters.items()}
        self.parts: list[torch.optim.Optimizer] = []
        self.average: WeightAverage | None = None
        """The running mean of the weights, if one is kept."""
        muon = [_torch_group(group) for group in groups if group.algorithm == "muon"]
        if muon:
            self.parts.append(
                Muon(
                    muon,
                    momentum=config.momentum,
                    steps=config.newton_schulz_steps,
                    update_scale=config.update_scale,
                    precision=config.newton_schulz_precision,
                )
            )
        adamw = [_torch_group(group) for group in groups if group.algorithm == "adamw"]
        if adamw:
            devices = {parameter.device.type for parameter in self.names}
            self.parts.append(
                torch.optim.AdamW(
                    adamw,
                    betas=(config.beta1, config.beta2),
                    eps=config.adamw_epsilon,
                    fused=devices <= set(FUSED_DEVICES),
                )
            )

    @property
    def param_groups(self) -> list[dict]:
        """The groups of all parts, as torch keeps them, each with its `role` and `peak_learning_rate`."""
        return [group for part in self.parts for group in part.param_groups]

    def set_learning_rate(self, fraction: float) -> None:
        """Give every group this fraction of its peak rate; what is set here is what the next `step` uses."""
        for group in self.param_groups:
            group["lr"] = group["peak_learning_rate"] * fraction

    def learning_rates(self) -> dict[str, float]:
        """The rate that each role uses now."""
        return {group["role"]: group["lr"] for group in self.param_groups}

    def step(self) -> None:
        """Move every parameter that has a gradient, and then their mean."""
        for part in self.parts:
            part.step()
        if self.average is not None:
            self.average.update()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.names:
            parameter.grad = None

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that `step` remembers, as tensors named `parameter/quantity`. Not copied.

        Learning rates are not among it: they follow from the step (schedule.py) and the configuration.
        """
        return {
            f"{self.names[parameter]}/{quantity}": value
            for part in self.parts
            for parameter, state in part.state.items()
            for quantity, value in state.items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state, bit for bit; the tensors are copied.

        Raises:
            RunFolderError: names or shapes that do not belong to this model and optimizer. Nothing is changed then.
        """
        parameters = {name: parameter for parameter, name in self.names.items()}
        owners = {p: part for part in self.parts for group in part.param_groups for p in group["params"]}
        loaded: dict[nn.Parameter, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, quantity = key.rpartition("/")
            parameter = parameters.get(name)
            if parameter is None or quantity not in _quantities(owners[parameter]):
                raise _foreign_state(f"an entry {key}")
            if quantity != "step" and value.shape != parameter.shape:
                raise _foreign_state(f"{key} of shape {tuple(value.shape)} for a weight of {tuple(parameter.shape)}")
            device = "cpu" if quantity == "step" and parameter.device.type == "cpu" else parameter.device
            copy = value.detach().to(device, copy=True)
            loaded.setdefault(parameter, {})[quantity] = copy if quantity == "step" else cut_like(copy, parameter)
        for parameter, quantities in loaded.items():
            missing = set(_quantities(owners[parameter])) - set(quantities)
            if missing:
                raise _foreign_state(f"no {self.names[parameter]}/{min(missing)}")
        for part in self.parts:
            part.state.clear()
        for parameter, quantities in loaded.items():
            owners[parameter].state[parameter] = quantities


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> ModelOptimizer:
    """The optimizer of a model: `parameter_groups`, and the algorithms that move them."""
    return ModelOptimizer(parameter_groups(model, config), config)


def _torch_group(group: ParameterGroup) -> dict:
    common = {
        "params": list(group.parameters.values()),
        "lr": group.learning_rate,
        "peak_learning_rate": group.learning_rate,
        "weight_decay": group.weight_decay,
        "role": group.role,
    }
    return common | {"row_slices": group.row_slices} if group.algorithm == "muon" else common


def _quantities(part: torch.optim.Optimizer) -> tuple[str, ...]:
    return ("momentum",) if isinstance(part, Muon) else ("step", "exp_avg", "exp_avg_sq")


def _foreign_state(came: str) -> RunFolderError:
    return RunFolderError(
        "the optimizer state of this very model and optimizer",
        came=came,
        remedy="resume with the configuration that the run was started with",
    )
