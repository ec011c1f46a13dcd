"""Which module's numbers were the first that are not finite?

    forward   in order of execution: the first module whose output is not finite; then the loss
    backward  in its order: the first module at whose output the gradient is not finite; then gradients of weights

One pass, eager and with torch's own hooks, over the batch that a step could not use: only then, since it costs a step.

In: a model, its eager loss, the batch.  Out: a `FirstNonFinite`, or None.  Used by: eyes, after a step that was
skipped.  Read next: health.py.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pellucid.train.addresses import addresses, is_finite, tensors_in

LOSS = "loss"


@dataclass(frozen=True, kw_only=True)
class FirstNonFinite:
    """Where numbers that are not finite arose.

    Example:
        >>> print(FirstNonFinite(module="blocks.0.attention.output", what="output", input_finite=False))
        output of blocks.0.attention.output (its input was not finite either, its weights were: it arose within ...
    """

    module: str
    """The module's address, or "loss"."""
    what: Literal["output", "gradient", "weight gradient"]
    """output: what it gave; gradient: what came back to its output; weight gradient: of its own weights."""
    input_finite: bool = True
    """Whether what it was given was finite; of a gradient: what it gave forward."""
    weights_finite: bool = True

    def __str__(self) -> str:
        """For a sentence: "the first that was not finite: the ..."."""
        if self.module == LOSS:
            return "loss (every module's output was finite)"
        match self.what:
            case "output":
                return f"output of {self.module} ({self._cause()})"
            case "gradient":
                return f"gradient that came back to {self.module} (every output and the loss were finite)"
            case "weight gradient":
                return f"gradient of the weights of {self.module} (every output and the loss were finite)"

    def _cause(self) -> str:
        if not self.weights_finite:
            return "its weights were not finite"
        if self.input_finite:
            return "its input and its weights were finite"
        parent = self.module.rpartition(".")[0]
        within = f"within {parent}" if parent else "before it"
        return f"its input was not finite either, its weights were: it arose {within}"


def told(found: FirstNonFinite | None, gradients: Sequence[str] = ()) -> str:
    """A clause for the step's event and for `beyond_repair`.

    Args:
        found: From `find_first_non_finite`.
        gradients: The weights whose gradients were not finite in the step itself.

    Example:
        >>> told(FirstNonFinite(module="lm_head", what="output"))
        'the first that was not finite: the output of lm_head (its input and its weights were finite)'
    """
    if found is not None:
        return f"the first that was not finite: the {found}"
    again = "computed once more, eagerly, every output and every gradient was finite"
    if not gradients:
        return again
    more = f" and {len(gradients) - 1} more" if len(gradients) > 1 else ""
    return f"the gradient of {gradients[0]}{more} was not finite; {again}"


def find_first_non_finite(
    model: nn.Module,
    loss: Callable[..., tuple[Tensor, Tensor]],
    batches: Iterable[tuple[Tensor, ...]],
    *,
    seed: int | None = None,
) -> FirstNonFinite | None:
    """Compute a loss and its gradients once more and look at every module.

    Meant for the time after a step that was skipped: `batches` are that step's micro-batches. Gradients that lie at
    the weights, the random streams and the model's mode stay as they are. Where ranks share the work, all must call it,
    each with its own micro-batches, as many as the others; each finds what is in its own.

    Args:
        model: Whose modules are looked at.
        loss: Its eager loss, such as `loss_function(model, replace(variant, compiled=False))`: a compiled one runs no
            hooks.
        batches: What the loss is called with, one after the other; all of them, whatever is found: ranks keep step.
        seed: For dropout: the step's, so that the same is dropped.

    Returns:
        None if everything is finite: what computed the step (a compiled program) is at fault, or it does not repeat.
    """
    device = next(model.parameters()).device
    kept = [(parameter, parameter.grad) for parameter in model.parameters()]
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.enable_grad():
        if seed is not None:
            torch.manual_seed(seed)
        try:
            found = [_look(model, loss, batch) for batch in batches]
        finally:
            for parameter, gradient in kept:
                parameter.grad = gradient
    return next(filter(None, found), None)


def _look(model: nn.Module, loss: Callable[..., Any], batch: tuple[Tensor, ...]) -> FirstNonFinite | None:
    found: list[FirstNonFinite] = []
    order: list[str] = []  # of modules with weights, as they ran
    with _watched(model, found, order):
        total, _ = loss(*batch)
        if not found and not is_finite(total):
            found.append(FirstNonFinite(module=LOSS, what="output"))
        for weight in model.parameters():
            weight.grad = None
        total.backward()
    if found:
        return found[0]
    for address in reversed(order):
        own = model.get_submodule(address).parameters(recurse=False)
        if not all(is_finite(weight.grad) for weight in own if weight.grad is not None):
            return FirstNonFinite(module=address, what="weight gradient")
    return None


@contextmanager
def _watched(model: nn.Module, found: list[FirstNonFinite], order: list[str]) -> Generator[None]:
    """While the block lasts, the first module whose output, or the gradient at it, is not finite goes into `found`."""

    def watch(address: str) -> Callable[..., None]:
        def after_backward(gradient: Tensor) -> None:
            if not found and not is_finite(gradient):
                found.append(FirstNonFinite(module=address, what="gradient"))

        def after_forward(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            order.append(address)
            for tensor in tensors_in(output):
                if not found and not is_finite(tensor):
                    found.append(
                        FirstNonFinite(
                            module=address,
                            what="output",
                            input_finite=all(map(is_finite, tensors_in(inputs))),
                            weights_finite=all(map(is_finite, module.parameters())),
                        )
                    )
                if tensor.requires_grad:
                    tensor.register_hook(after_backward)

        return after_forward

    with ExitStack() as stack:
        for address, module in addresses(model):
            stack.enter_context(module.register_forward_hook(watch(address)))
        yield
