"""Samples: the same prompt, continued by the model as it learns, and a longer one at the end.

A sample draws from a generator of its own, so taking one changes nothing in the run.

In: a model, a tokenizer, a prompt.  Out: text.  Used by: run.  Read next: facts.py.
"""

from collections.abc import Callable

import torch

from pellucid.generate.decode import decode, fit_prompt
from pellucid.generate.sampling import sample
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer
from pellucid.train.evaluation import reading

SAMPLE_TOKENS = 60  # two or three lines on a screen
CLOSING_TOKENS = 300  # enough to see a copied passage; about a second
TEMPERATURE = 0.8


def sampler(model: TransformerLM, tokenizer: TextTokenizer, prompt: str, seed: int) -> Callable[[int], tuple[str, str]]:
    """A function from a step to (prompt, what the model makes of it); the seed is the same at every step."""
    return lambda _step: (prompt, write(model, tokenizer, prompt, seed, SAMPLE_TOKENS))


def closing_sample(model: TransformerLM, tokenizer: TextTokenizer, prompt: str, seed: int) -> str:
    """A longer text, for people to read and to search for copied passages."""
    return write(model, tokenizer, prompt, seed, CLOSING_TOKENS)


def write(model: TransformerLM, tokenizer: TextTokenizer, prompt: str, seed: int, max_tokens: int) -> str:
    """What follows a prompt, from the start of a document; the model is left as it was."""
    ids = [tokenizer.end_of_text_id, *tokenizer.encode(prompt).tolist()]
    ids, _ = fit_prompt(ids, model.config.context_length, truncate=True)
    config, stream = GenerationConfig(temperature=TEMPERATURE), torch.Generator().manual_seed(seed)
    with reading(model):
        written = decode(model, [ids], lambda _, logits: sample(logits, config, stream), max_tokens=max_tokens)
        return tokenizer.decode(token_id for _, token_id in written)
