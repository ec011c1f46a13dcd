"""Small models to talk with: random weights, and every control token of chats."""

import torch

from pellucid import presets
from pellucid.checkpoint import RunFolder
from pellucid.nn import TransformerLM
from pellucid.text import CHATML, TextTokenizer
from tests.text.chat_tokenizers import byte_pairs


def saved(path, *, template=CHATML, context_length=256, tokenizer: TextTokenizer | None = None):
    """A run's folder, with a template or without."""
    tokenizer = tokenizer or byte_pairs()
    torch.manual_seed(0)
    shape = {"d_model": 32, "num_heads": 4, "num_layers": 1, "context_length": context_length}
    model = TransformerLM(presets.default(vocab_size=tokenizer.vocab_size, **shape))
    folder = RunFolder.create(path, {})
    tokenizer.save(folder.tokenizer_path)
    folder.save_model(model.state_dict(), model.config)
    if template is not None:
        (path / "chat_template.jinja").write_text(template, encoding="utf-8")
    return str(path)
