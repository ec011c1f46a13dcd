"""The norm of all gradients together, and a bound on it.

In: parameters with gradients.  Out: the norm; the gradients, scaled in place.
Used by: train, cs336.  Read next: ../train.
"""

from collections.abc import Iterable
from typing import Any, cast

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from pellucid.optim.sharded import here, is_cut

EPSILON = 1e-6  # keeps the quotient finite at a norm of 0; the value of torch's clip_grad_norm_ and of the course


def global_norm(parameters: Iterable[Tensor]) -> Float[Tensor, ""]:
    """Length of all gradients laid end to end: sqrt(sum of squares). Without any gradient it is 0.

    Of gradients that are cut over processes it is the length of the whole, the same on every process.

    Example:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> global_norm([weight]).item()
        5.0
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    widest = max((gradient.dtype for gradient in gradients), key=lambda dtype: dtype.itemsize)
    dtype = torch.promote_types(widest, torch.float32)
    norms = torch._foreach_norm([here(gradient) for gradient in gradients], 2.0, dtype=dtype)
    norm = torch.stack([norm.to(norms[0].device) for norm in norms]).norm()
    if is_cut(gradients[0]):  # FSDP2 cuts all or none
        squared = norm.square()
        dist.all_reduce(squared, group=cast(Any, gradients[0]).device_mesh.get_group())
        norm = squared.sqrt()
    return norm


@torch.no_grad()
def clip_gradients(parameters: Iterable[Tensor], max_norm: float) -> Float[Tensor, ""]:
    """Scale all gradients by one factor so that their common norm is at most `max_norm`.

    factor = max_norm / (norm + 1e-6)  where norm > max_norm, else 1

    A norm that is not finite leaves the gradients as they are: the caller sees it in the returned norm and skips the
    step; scaling would turn every gradient into NaN or 0 and hide where the fault arose.

    Args:
        parameters: Those without a gradient are passed over.
        max_norm: The bound; 0 means none.

    Returns:
        The norm before clipping.

    Source: Pascanu et al. 2013, section 3.2. As `torch.nn.utils.clip_grad_norm_`.

    Example:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> clip_gradients([weight], 1.0).item(), weight.grad.norm().item() < 1
        (5.0, True)
    """
    parameters = list(parameters)
    norm = global_norm(parameters)
    if max_norm <= 0 or not norm.isfinite() or norm <= max_norm:
        return norm
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    torch._foreach_mul_([here(gradient) for gradient in gradients], max_norm / (norm.item() + EPSILON))
    return norm
