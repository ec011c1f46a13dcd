"""The baseline: GPT-2 as one writes it from torch's own layers, trained by a plain loop.

Eager, float32, `torch.optim.AdamW` as it comes. It is fair: torch's layers and its attention kernel are fast; it does
not measure gradients nor take care of anything. What pellucid is faster by, it is faster by than this.

In: a `TrainingLoad` of GPT-2's shape.  Out: steps.  Used by: contender.  Read next: contender.py.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from pellucid.bench.load import LEARNING_RATE, TrainingLoad
from pellucid.errors import ConfigError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

SHAPE_OF_GPT2 = {
    "norm": "layer",
    "norm_placement": "pre",
    "feed_forward": "gelu",
    "positions": "learned",
    "qk_norm": "none",
    "qkv_bias": True,
    "attention_output_bias": True,
    "feed_forward_bias": True,
    "tie_embeddings": True,
    "dropout": 0.0,
}


def fits_plain(config: ModelConfig) -> bool:
    """Whether a config describes what is written out below."""
    same_heads = config.num_kv_heads == config.num_heads and config.d_model == config.num_heads * (config.d_head or 0)
    rest = config.window is None and config.norm_bias and config.embedding_scale == 1 and not config.logit_soft_cap
    return same_heads and rest and all(getattr(config, name) == value for name, value in SHAPE_OF_GPT2.items())


class PlainBlock(nn.Module):
    """Attention and feed-forward, each behind a layer norm and added to what came in."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        d_ff = config.d_ff or 4 * config.d_model
        self.attention_norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.query_key_value = nn.Linear(config.d_model, 3 * config.d_model)
        self.output = nn.Linear(config.d_model, config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.up = nn.Linear(config.d_model, d_ff)
        self.gelu = nn.GELU(approximate="tanh" if config.gelu == "tanh" else "none")
        self.down = nn.Linear(d_ff, config.d_model)

    def forward(self, x: Float[Tensor, "batch position d_model"]) -> Float[Tensor, "batch position d_model"]:
        """Add what each part makes of x."""
        query, key, value = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in self.query_key_value(self.attention_norm(x)).chunk(3, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).flatten(-2))
        return x + self.down(self.gelu(self.up(self.feed_forward_norm(x))))


class PlainGPT(nn.Module):
    """GPT-2 of torch.nn's layers.

    Raises:
        ConfigError: for a config of another shape.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if not fits_plain(config):
            raise ConfigError(
                "the shape of GPT-2, without dropout, for the plain loop",
                came="another",
                remedy="measure other shapes against their own eager float32 step",
            )
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context_length, config.d_model)
        self.blocks = nn.ModuleList(PlainBlock(config) for _ in range(config.num_layers))
        self.final_norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.lm_head.weight = self.token_embedding.weight

    def forward(self, token_ids: Int64[Tensor, "batch position"]) -> Float[Tensor, "batch position vocab"]:
        """Logits."""
        positions = torch.arange(token_ids.shape[1], device=token_ids.device)
        x = self.token_embedding(token_ids) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.final_norm(x))

    def take_weights(self, model: TransformerLM) -> "PlainGPT":
        """Begin where `model` begins: the names differ only in what part of a block a matrix is listed under."""
        state = {
            name.replace(".attention.", ".").replace(".feed_forward.", "."): tensor
            for name, tensor in model.state_dict().items()
        }
        self.load_state_dict(state)
        return self


class PlainLoop:
    """The plain loop, a step at a time.

    Args:
        load: Sizes, first weights, tokens.
        switched: With every switch that torch has for speed: compiled, bfloat16 by autocast, AdamW as one kernel.

    Example:
        >>> from pellucid import presets
        >>> from pellucid.bench.load import adamw
        >>> sizes = dict(vocab_size=8, d_model=16, num_layers=1, num_heads=2, context_length=4, dropout=0.0)
        >>> load = TrainingLoad(
        ...     config=presets.gpt2(**sizes), batch_size=2, optimizer=adamw(), initialization="gpt2"
        ... )
        >>> int(PlainLoop(load)(1))  # about log 8, 2.08, as nothing has been learned
        2
    """

    def __init__(self, load: TrainingLoad, *, switched: bool = False) -> None:
        self.load, self.switched = load, switched
        self.model = PlainGPT(load.config).take_weights(load.model())
        self.forward = torch.compile(self.model) if switched else self.model
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=LEARNING_RATE, weight_decay=0.0, fused=True if switched else None
        )

    def __call__(self, step: int) -> float:
        """Take a step; returns the loss before it."""
        inputs, targets = self.load.at(step - 1)
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.switched):
            logits = self.forward(inputs)
            loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        self.optimizer.step()
        return loss.item()
