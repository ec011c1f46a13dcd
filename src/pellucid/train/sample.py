"""Samples: the same prompt, continued by the model as it learns, and a longer one at the end.

A sample draws from a generator of its own, so taking one changes nothing in the run.

In: a model, a tokenizer, a prompt.  Out: text.  Used by: assembly, run.  Read next: recipe.py.
"""

from dataclasses import dataclass

import torch

from pellucid.checkpoint import RunFolder
from pellucid.generate import decode, fit_prompt, sample, whole_characters, whole_text
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import ChatTemplate, Message, TextTokenizer
from pellucid.train.evaluation import reading
from pellucid.train.material import Material

SAMPLE_TOKENS = 60  # two or three lines on a screen
CLOSING_TOKENS = 300  # enough to see a copied passage; about a second
TEMPERATURE = 0.8


@dataclass(frozen=True)
class Sampler:
    """Writes from the same prompt, with the same seed, whenever it is asked."""

    tokenizer: TextTokenizer
    prompt: str
    """As a person reads it."""
    seed: int
    question: tuple[int, ...] = ()
    """Of chats, the ids of all that comes before the answer; else the prompt is what is read."""
    stop_ids: frozenset[int] = frozenset()
    """Ids that end what is written."""

    def __call__(self, model: TransformerLM, max_tokens: int = SAMPLE_TOKENS) -> str:
        """What follows the prompt, or the start of a document if there is none; the model is left as it was."""
        tokenizer = self.tokenizer
        ids = list(self.question) or [*tokenizer.beginning_ids, *tokenizer.encode(self.prompt).tolist()]
        ids = ids or [tokenizer.end_of_text_id]
        ids, _ = fit_prompt(ids, model.config.context_length, truncate=True)
        config, stream = GenerationConfig(temperature=TEMPERATURE), torch.Generator().manual_seed(self.seed)
        with reading(model):
            choose = whole_characters(tokenizer, lambda _, logits: sample(logits, config, stream))
            decoded = decode(model, [ids], choose, max_tokens=max_tokens, stop_ids=self.stop_ids)
            written = [token_id for _, token_id in decoded]
        return whole_text(tokenizer, written)


def sampler_of(folder: RunFolder, material: Material) -> Sampler:
    """The sampler of a run: of chats it answers the prompt, or else what a held-out conversation begins with."""
    training, tokenizer = folder.facts["config"]["training"], material.tokenizer
    prompt, seed = training["prompt"], training["seed"]
    if not material.data.are_chats:
        return Sampler(tokenizer, prompt, seed)
    question, stop_ids = material.question(), frozenset(folder.facts["end_ids"])
    if prompt:
        template = ChatTemplate(folder.chat_template_path.read_text(encoding="utf-8"), tokenizer)
        question = template.encode([Message("user", prompt)], begin_answer=True).ids
    return Sampler(tokenizer, prompt or folder.facts["asked"], seed, tuple(question), stop_ids)
