"""A tiny run folder to be measured."""

import torch

from pellucid import presets
from pellucid.checkpoint import RunFolder
from pellucid.nn import TransformerLM
from pellucid.text import train_byte_pairs

TEXT = ["The value of the expression is evaluated; a statement may be compound, and so may be a value. " * 9]


def make_run(path, **sizes):
    tokenizer = train_byte_pairs(TEXT, 280)
    torch.manual_seed(0)
    shape = {"d_model": 64, "num_heads": 4, "num_layers": 2, "context_length": 64, "d_ff": 96, **sizes}
    model = TransformerLM(presets.default(vocab_size=tokenizer.vocab_size, **shape)).eval()
    folder = RunFolder.create(path, {"seed": 1, "tokenizer": {"fingerprint": tokenizer.fingerprint}})
    tokenizer.save(folder.tokenizer_path)
    folder.save_model(model.state_dict(), model.config)
    return model
