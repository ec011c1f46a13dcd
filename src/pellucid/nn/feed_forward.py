"""The feed-forward part of a block: each token on its own, through a wider layer and back.

    plain   x ──up──▶ activation ──▶ down         gated   x ─┬─gate──▶ activation ─┐
                                                             └─up───────────────── × ──▶ down

In: vectors of width d_model.  Out: the same width.  Used by: block.  Read next: positions.py.
"""

from jaxtyping import Float
from torch import Tensor, nn

from pellucid.nn.activations import Activation, gelu, gelu_tanh, relu2, silu
from pellucid.nn.linear import Linear


class FeedForward(nn.Module):
    """down(activation(up(x))).

    Args:
        d_model: Width outside.
        d_ff: Width inside.
        activation: The function between.
        bias: Whether both maps have a bias.

    Source: Vaswani et al. 2017, equation 2, with ReLU.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation, bias: bool = False) -> None:
        super().__init__()
        self.activation = activation
        self.up = Linear(d_model, d_ff, bias)
        self.down = Linear(d_ff, d_model, bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Widen, bend, narrow."""
        return self.down(self.activation(self.up(x)))


class GatedFeedForward(nn.Module):
    """down(activation(gate(x)) * up(x)).

    Args:
        d_model: Width outside.
        d_ff: Width inside.
        activation: The function on the gate.
        bias: Whether the three maps have a bias.

    Source: Shazeer 2020, equation 6; gate, up, down are W1, W3, W2 of the Llama code and of CS336.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation, bias: bool = False) -> None:
        super().__init__()
        self.activation = activation
        self.gate = Linear(d_model, d_ff, bias)
        self.up = Linear(d_model, d_ff, bias)
        self.down = Linear(d_ff, d_model, bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Widen twice, gate, narrow."""
        return self.down(self.activation(self.gate(x)) * self.up(x))


class SwiGLU(GatedFeedForward):
    """down(silu(gate(x)) * up(x)): the feed-forward part of Llama and Qwen.

    Example:
        >>> import torch
        >>> SwiGLU(d_model=4, d_ff=8)(torch.ones(2, 4)).shape
        torch.Size([2, 4])
    """

    def __init__(self, d_model: int, d_ff: int, bias: bool = False) -> None:
        super().__init__(d_model, d_ff, silu, bias)


class GEGLU(GatedFeedForward):
    """down(gelu(gate(x)) * up(x)): the feed-forward part of Gemma, there with approximate="tanh"."""

    def __init__(self, d_model: int, d_ff: int, bias: bool = False, approximate: str = "exact") -> None:
        super().__init__(d_model, d_ff, gelu_tanh if approximate == "tanh" else gelu, bias)


class GeluFeedForward(FeedForward):
    """down(gelu(up(x))): the feed-forward part of GPT-2, there with approximate="tanh"."""

    def __init__(self, d_model: int, d_ff: int, bias: bool = False, approximate: str = "exact") -> None:
        super().__init__(d_model, d_ff, gelu_tanh if approximate == "tanh" else gelu, bias)


class SiluFeedForward(FeedForward):
    """down(silu(up(x))): SwiGLU with its gate taken away, the course's ablation."""

    def __init__(self, d_model: int, d_ff: int, bias: bool = False) -> None:
        super().__init__(d_model, d_ff, silu, bias)


class Relu2FeedForward(FeedForward):
    """down(relu(up(x))^2)."""

    def __init__(self, d_model: int, d_ff: int, bias: bool = False) -> None:
        super().__init__(d_model, d_ff, relu2, bias)
