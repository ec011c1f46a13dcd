"""Weights in eight bits: a quarter of float32's bytes, and so of the time that reading them takes.

    scale[o]      = max over i of |w[o, i]| / 127        one for each output
    integer[o, i] = round(w[o, i] / scale[o])            from -127 to 127
    y[o]          = scale[o] * sum over i of integer[o, i] x[i]

Only weights are rounded, each by half a scale at most; activations, norms and sums stay as wide as they were. Decoding
reads the integers where they lie (generate/decode_step.cpp); what is here is the reference, and reads long prompts.

In: a model.  Out: the same model, its matrices in eight bits.  Used by: precision, generate.  Read next: precision.py.
"""

import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor, nn

from pellucid.nn import Linear, TransformerLM

FEW_TOKENS = 8
"""Up to so many, torch's kernel that widens weights as it reads them is quicker than widening all of them first."""


def quantize_rows(weight: Float[Tensor, "d_out d_in"]) -> tuple[Int8[Tensor, "d_out d_in"], Float[Tensor, " d_out"]]:
    """Each row as whole numbers from -127 to 127 and a scale, symmetric about 0.

    Source: Jacob et al. 2018, section 2.1, with a zero point of 0 and a scale for each row.

    Example:
        >>> quantize_rows(torch.tensor([[0.5, -1.27]]))
        (tensor([[  50, -127]], dtype=torch.int8), tensor([0.0100]))
    """
    weight = weight.detach().float()
    scale = weight.abs().amax(dim=1) / 127
    integers = weight / scale.clamp(min=torch.finfo(torch.float32).tiny)[:, None]
    return integers.round_().to(torch.int8), scale


class Int8Linear(nn.Module):
    """`nn.Linear` with its weight in eight bits; it cannot be trained.

    Args:
        linear: The map to take over.
        product_type: What products of many tokens are taken in; the integers are exact in each.

    Example:
        >>> linear = Linear(64, 8)
        >>> x = torch.ones(2, 64)
        >>> bool((Int8Linear(linear)(x) - linear(x)).abs().max() < 0.1)
        True
    """

    integers: Tensor
    scale: Tensor

    def __init__(self, linear: Linear, product_type: torch.dtype = torch.float32) -> None:
        super().__init__()
        integers, scale = quantize_rows(linear.weight)
        self.register_buffer("integers", integers)
        self.register_buffer("scale", scale)
        self.bias = linear.bias
        self.product_type = product_type

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Map the last axis."""
        tokens = x.reshape(-1, x.shape[-1])
        if len(tokens) <= FEW_TOKENS and x.device.type == "cpu":
            y = torch._weight_int8pack_mm(tokens.contiguous(), self.integers, self.scale.to(x.dtype))
        else:
            y = (tokens.to(self.product_type) @ self.integers.to(self.product_type).T).to(x.dtype) * self.scale
        y = y.reshape(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias.to(y.dtype)


class Int8Embedding(nn.Module):
    """`nn.Embedding` whose rows are those of a head in eight bits: tied, they are stored once.

    Args:
        head: The head.
    """

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        assert isinstance(head, Int8Linear)
        self.head = head

    def forward(self, token_ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Look rows up."""
        return self.head.integers[token_ids].float() * self.head.scale[token_ids][..., None]


@torch.no_grad()
def quantize_model(model: TransformerLM, product_type: torch.dtype = torch.float32) -> TransformerLM:
    """Put every matrix of a model into eight bits, one after the other, in place; an embedding that is not tied stays.

    Args:
        model: Is changed, and can no longer be trained.
        product_type: See `Int8Linear`.
    """
    for parent in list(model.modules()):
        for name, part in list(parent.named_children()):
            if type(part) is Linear:
                setattr(parent, name, Int8Linear(part, product_type))
    if model.config.tie_embeddings:
        model.register_module("token_embedding", Int8Embedding(model.lm_head))
    return model
