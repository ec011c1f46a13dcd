"""Samples: the same prompt, continued by the model as it learns, and a longer one at the end.

A sample draws from a generator of its own, so taking one changes nothing in the run.

In: a model, a tokenizer, a prompt.  Out: text.  Used by: assembly, run.  Read next: recipe.py.
"""

from dataclasses import dataclass

import torch

from pellucid.generate import decode, fit_prompt, sample, whole_characters, whole_text
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer
from pellucid.train.evaluation import reading

SAMPLE_TOKENS = 60  # two or three lines on a screen
CLOSING_TOKENS = 300  # enough to see a copied passage; about a second
TEMPERATURE = 0.8


@dataclass(frozen=True)
class Sampler:
    """Writes from the same prompt, with the same seed, whenever it is asked."""

    tokenizer: TextTokenizer
    prompt: str
    seed: int

    def __call__(self, model: TransformerLM, max_tokens: int = SAMPLE_TOKENS) -> str:
        """What follows the prompt, or the start of a document if there is none; the model is left as it was."""
        ids = self.tokenizer.encode(self.prompt).tolist() or [self.tokenizer.end_of_text_id]
        ids, _ = fit_prompt(ids, model.config.context_length, truncate=True)
        config, stream = GenerationConfig(temperature=TEMPERATURE), torch.Generator().manual_seed(self.seed)
        with reading(model):
            choose = whole_characters(self.tokenizer, lambda _, logits: sample(logits, config, stream))
            written = [token_id for _, token_id in decode(model, [ids], choose, max_tokens=max_tokens)]
        return whole_text(self.tokenizer, written)
