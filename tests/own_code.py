"""Parts of one's own for tests: good ones, and one for each mistake that is looked for."""

MINE = '''
import torch
from torch import nn
from pellucid.nn import CausalMultiHeadAttention, Linear
from pellucid.nn.feed_forward import GatedFeedForward


class ReGLU(GatedFeedForward):
    def __init__(self, d_model, d_ff, bias=False):
        super().__init__(d_model, d_ff, torch.relu, bias)


class Scaled(nn.Module):
    def __init__(self, d_model, epsilon):
        super().__init__()
        self.epsilon = epsilon
        self.register_buffer("halves", torch.full((d_model,), 0.5), persistent=False)

    def forward(self, x):
        return x * self.halves * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)


class Halved(CausalMultiHeadAttention):
    def forward(self, x, **how):
        return super().forward(x, **how) / 2


class Drawn(nn.Module):
    """Weights of its own, whose names are not ours."""

    def __init__(self, d_model, d_ff, bias):
        super().__init__()
        self.mixing = nn.Parameter(torch.randn(d_model, d_model) / 4)
        self.bias = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return x @ self.mixing + self.bias


class OneHead(nn.Module):
    """Attention with one head, which has a fused matrix cut otherwise than ours."""

    def __init__(self, config, layer, rotary):
        super().__init__()
        self.heads, self.d_head = config.num_kv_heads, config.d_head
        self.query_key_value = Linear(config.d_model, (1 + 2 * self.heads) * self.d_head)
        self.output = Linear(self.d_head, config.d_model)

    def forward(self, x, *, positions=None, mask=None, cache=None):
        sizes = (self.d_head, self.heads * self.d_head, self.heads * self.d_head)
        query, key, value = self.query_key_value(x).split(sizes, -1)
        query = query.unsqueeze(1)
        key, value = (part.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2) for part in (key, value))
        if cache is not None:
            key, value = cache.write(key, value)
        if mask is None:
            mask = torch.ones(x.shape[1], key.shape[2], dtype=torch.bool, device=x.device).tril()
        scores = (query @ key[:, :1].transpose(-1, -2)) / self.d_head**0.5
        weights = scores.masked_fill(~mask.unsqueeze(-3), -torch.inf).softmax(-1)
        return self.output((weights @ value[:, :1]).squeeze(1))
'''

MISTAKES = {
    "Wrong": ("super().__init__()", "return x[..., :-1]", "to give (2, 7, 32) of torch.float32, as it was given"),
    "Halves": ("super().__init__()", "return x.half()", "of torch.float16"),
    "Text": ("super().__init__()", "return 'x'", "but got str"),
    "Later": ("super().__init__()", "return x.flip(-2)", "to look at no later position"),
    "Mixing": ("super().__init__()", "return x - x.mean(0, keepdim=True)", "to treat each row of a batch apart"),
    "Dice": ("super().__init__()", "return torch.randn_like(x)", "to give the same for the same"),
    "Endless": ("super().__init__()", "return x / 0", "to give finite numbers"),
    "Breaks": ("super().__init__()", "return x @ x", "RuntimeError in line 8"),
    "Unbuilt": ("raise OSError('no such table')", "return x", "to be built: NAME(d_model, d_ff, bias)"),
    "Short": ("super().__init__()", "return x[:, :15] if x.shape[1] > 15 else x", "run at a length of 16"),
    "Detached": ("super().__init__()", "return x.detach().requires_grad_().numpy()", "RuntimeError in line 8"),
}


def mistaken(name):
    """A file with the feed-forward part of that name."""
    first, second, _ = MISTAKES[name]
    return f"""import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self, d_model, d_ff, bias):
        {first}
    def forward(self, x):
        {second}
"""
