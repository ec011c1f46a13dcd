"""A tiny run folder, for tests that open, write with, export or measure a model."""

import torch

from pellucid import presets
from pellucid.checkpoint import RunFolder
from pellucid.nn import TransformerLM

SHAPE = {"d_model": 32, "num_heads": 4, "num_layers": 1, "context_length": 16}


def save_run(path, tokenizer, facts=None, **sizes):
    """Write a model with random weights and its tokenizer; gives the model."""
    torch.manual_seed(0)
    model = TransformerLM(presets.default(vocab_size=tokenizer.vocab_size, **SHAPE | sizes)).eval()
    folder = RunFolder.create(path, facts or {})
    tokenizer.save(folder.tokenizer_path)
    folder.save_model(model.state_dict(), model.config)
    return model
