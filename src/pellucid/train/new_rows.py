"""Rows for tokens that a model has not had: the mean of the rows that it has.

    ids   0 ─────────────── tokens ───────────────┤ padding rows ├
                                                  └ new tokens take these first, and then rows behind them

A new token's embedding is the mean of all embeddings, and so is its row in the head. Then each old token keeps its
logit, bit for bit, and a new one scores the mean of them: no token becomes much more likely than it was, as one would
with a row drawn at random.

In: a model, what it shall be.  Out: the model.  Used by: start.  Read next: start.py.

Source: Hewitt 2021, "Initializing new word embeddings for pretrained language models"; as transformers'
`resize_token_embeddings`, which adds a little noise.
"""

import torch
from torch import Tensor

from pellucid.checkpoint import empty_model, load_weights
from pellucid.errors import ConfigError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM


@torch.no_grad()
def with_new_rows(model: TransformerLM, config: ModelConfig) -> TransformerLM:
    """A model in float32 that is `model` with another vocabulary at its end, or none; `model` itself is used up.

    Args:
        model: As it was loaded.
        config: Its own, but for vocab_size, num_unused_ids and what has no weights.

    Raises:
        ConfigError: if ids would be taken away.

    Example:
        >>> from dataclasses import replace
        >>> model = TransformerLM(ModelConfig(vocab_size=6, num_unused_ids=1, d_model=64, num_heads=4))
        >>> longer = with_new_rows(model, replace(model.config, vocab_size=7, num_unused_ids=0))
        >>> longer.token_embedding.weight.shape
        torch.Size([7, 64])
        >>> torch.equal(longer.token_embedding.weight[5], longer.token_embedding.weight[6])
        True
    """
    num_old, num_ids = (one.vocab_size - one.num_unused_ids for one in (model.config, config))
    if num_ids < num_old or config.vocab_size < model.config.vocab_size:
        raise ConfigError(f"at least {num_old:,} ids", came=f"{num_ids:,}", remedy="keep the tokens that there are")
    tables = model.float().state_dict()
    for name in ("token_embedding.weight", "lm_head.weight", "lm_head.bias"):
        if name in tables and num_ids > num_old:
            tables[name] = _longer(tables[name], num_old, num_ids, config.vocab_size)
    made = empty_model(config)
    load_weights(made, tables, "the model at hand")
    return made


def _longer(table: Tensor, num_old: int, num_ids: int, size: int) -> Tensor:
    """The rows of the tokens there are, new ones, and padding rows as they were, or of zeros."""
    longer = torch.zeros(size, *table.shape[1:])
    longer[: len(table)] = table
    # One thread at a time adds float64 numbers up in a fixed order: the mean is the same wherever it is taken.
    longer[num_old:num_ids] = table[:num_old].double().mean(0).float()
    return longer
