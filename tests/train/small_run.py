"""A run small enough for a test: a text of invented sentences, characters as tokens, one narrow layer.

In: a folder and what shall differ.  Out: `small_request`, `train_small`, `Heard`.  Used by: the tests of train, cli and
whole.  Read next: test_run.py.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from pellucid import presets
from pellucid.data import Document, Sources, sources_of_texts
from pellucid.nn import TransformerLM
from pellucid.train import Event, Finished, Request, closing, train, trial
from pellucid.training_config import TrainingConfig

SENTENCE = "the cat sat on a mat and old men sang songs of sea sky while dogs ran to see it"
MODEL = {"d_model": 32, "num_layers": 1, "num_heads": 2, "context_length": 16, "dropout": 0.0}
TRAINING = {"steps": 6, "batch_size": 4, "evaluations": 2, "precision": "float32", "compile": "off"}
TIMES = {
    "seconds",
    "tokens_per_second",
    "training_seconds",
    "seconds_left",
    "step_seconds",
    "compile_seconds",
    "planned_step_seconds",
    "peak_memory_bytes",
}
"""Fields of events that differ from run to run; metrics are the same apart from these."""


def small_text(characters: int = 3000, seed: int = 0) -> str:
    draw, vocabulary = random.Random(seed), SENTENCE.split()
    words = (draw.choice(vocabulary) + (".\n" if draw.random() < 0.1 else " ") for _ in range(characters))
    return "".join(words)[:characters]


def small_sources(characters: int = 3000) -> Sources:
    return sources_of_texts([Document("words.txt", small_text(characters))])


def small_request(out: Path, *, sources: Sources | None = None, **changes: Any) -> Request:
    """`changes` are fields of TrainingConfig, or of Request where it has one of that name."""
    ours = {name: changes.pop(name) for name in list(changes) if name in Request.__dataclass_fields__}
    model = {**MODEL, **ours.pop("model", {})}
    training = TrainingConfig(**{**TRAINING, **changes})
    return Request(
        sources=sources or small_sources(),
        name="words.txt",
        out=out,
        training=training,
        tokenizer=ours.pop("tokenizer", "characters"),
        model=model,
        **ours,
    )


class Heard(list[Event]):
    """An observer that remembers."""

    __call__ = list.append

    def of(self, *kinds: type) -> list[Any]:
        return [event for event in self if isinstance(event, kinds)]


def train_small(out: Path, *, watch=lambda: False, **changes: Any) -> tuple[Finished, Heard]:
    heard = Heard()
    return train(small_request(out, **changes), heard, watch=watch), heard


def stop_after(steps: int):
    """A `watch` that stops after so many steps, and whenever it is asked again."""
    asked = iter(range(1, steps))
    return lambda: next(asked, None) is None


def cut_short(patch: pytest.MonkeyPatch) -> None:
    """The closing sample and the timed trial take a moment; they are no part of what is tested."""
    patch.setattr(closing, "CLOSING_TOKENS", 20)
    patch.setattr(trial, "TIMED_SECONDS", 0.0)


def timeless(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in TIMES}


def small_model(**changes: Any) -> TransformerLM:
    """A model whose weights are large enough that errors show."""
    model = TransformerLM(presets.default(**{"vocab_size": 24, **MODEL, **changes}))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if name.endswith("norm.weight") else 0.0, 0.2, generator=generator)
    return model
