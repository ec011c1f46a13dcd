"""What somebody asked for, and the recipe it comes to.

In: sources, flags.  Out: `Request`.  Used by: the command line, run.  Read next: material.py.
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pellucid import own_parts
from pellucid.data import PreparedText, Sources, Split, split_of
from pellucid.data.split import TENTHS
from pellucid.errors import ConfigError, DataError
from pellucid.train import facts
from pellucid.train.device import Capabilities, check_device
from pellucid.train.events import TextRead
from pellucid.train.recipe import Recipe, choose_recipe
from pellucid.training_config import TrainingConfig

DEFAULT_MINUTES = 5.0


def minutes_of(training: TrainingConfig) -> float | None:
    """The minutes of a run, or None for one that is counted in steps from the start."""
    return None if training.steps else training.minutes or DEFAULT_MINUTES


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run, as it was asked for."""

    sources: Sources | PreparedText
    name: str
    """What the text is called on the screen and in run.json."""
    out: Path
    training: TrainingConfig = field(default_factory=TrainingConfig)
    preset: str = "default"
    tokenizer: str | None = None
    """characters, bpe, or the path of a tokenizer.json; None leaves it to the recipe, and mostly to the text."""
    vocab_size: int | None = None
    """bpe: how many ids; None leaves it to the recipe, likewise."""
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig to put over the recipe's; likewise the next two."""
    optimizer: dict[str, Any] = field(default_factory=dict)
    schedule: dict[str, Any] = field(default_factory=dict)

    @property
    def split(self) -> Split:
        """How the text is split."""
        return self.sources.split if isinstance(self.sources, PreparedText) else split_of(self.sources)

    @property
    def minutes(self) -> float | None:
        """Minutes, or None for a run that is counted in steps from the start."""
        return minutes_of(self.training)

    def recipe(self) -> Recipe:
        """The planner's recipe with everything that was asked for put over it.

        Raises:
            ConfigError: if that makes no model.
        """
        minutes, letters = self.minutes or DEFAULT_MINUTES, len(self.sources.alphabet)
        chosen = choose_recipe(self.sources.characters, minutes, self.preset, letters)
        device = check_device(self.training.device, Capabilities.of_this_machine())
        everything = device != "cpu" or self.training.steps is not None
        if isinstance(self.sources, PreparedText):
            self._require_own_tokenizer()
            chosen, everything = replace(chosen, tokenizer=None), True
        recipe = replace(
            chosen,
            most_characters=None if everything else chosen.most_characters,
            tokenizer=self.tokenizer or ("bpe" if self.vocab_size else chosen.tokenizer),
            vocab_size=self.vocab_size or chosen.vocab_size,
            model=chosen.model | own_parts.pinned(self.model),
            batch_size=self.training.batch_size or chosen.batch_size,
            optimizer=replace(chosen.optimizer, **self.optimizer),
            schedule=replace(chosen.schedule, **self.schedule),
        )
        recipe = self._with_tokens_per_step(recipe)
        self._check_against_text(recipe)
        if self.vocab_size and recipe.tokenizer not in (None, "bpe"):
            raise ConfigError(
                "vocab_size for the bpe tokenizer alone, which learns so many ids",
                came=f"vocab_size={self.vocab_size} for the tokenizer {recipe.tokenizer}",
                remedy="leave it out, or choose bpe",
            )
        return recipe

    def _require_own_tokenizer(self) -> None:
        if self.tokenizer or self.vocab_size:
            asked = f"the tokenizer {self.tokenizer}" if self.tokenizer else f"vocab_size={self.vocab_size}"
            raise ConfigError(
                "a prepared folder's own tokenizer, which its tokens were made with",
                came=f"{asked} beside it",
                remedy="leave it out, or prepare the text anew with it",
            )

    def _with_tokens_per_step(self, recipe: Recipe) -> Recipe:
        """As many rows as make the tokens per step that were asked for."""
        tokens = self.training.tokens_per_step
        if tokens is None:
            return recipe
        context_length = recipe.model_config(recipe.vocab_size or recipe.least_vocab_size).context_length
        if tokens % context_length:
            less = tokens // context_length * context_length
            nearest = " or ".join(f"{number:,}" for number in (less, less + context_length) if number)
            raise ConfigError(
                f"tokens_per_step that are whole rows of {context_length:,} tokens",
                came=f"{tokens:,}",
                remedy=f"choose {nearest}, or another context_length",
            )
        return replace(recipe, batch_size=tokens // context_length)

    def _check_against_text(self, recipe: Recipe) -> None:
        """Refuse at once what no text of this size can fill, before memory is asked for; a token is a byte or more."""
        num_bytes = self.sources.utf8_bytes
        largest = num_bytes + 257  # the bytes themselves, and the end of a text
        if recipe.vocab_size and recipe.vocab_size > largest:
            raise ConfigError(
                f"a vocab_size that {num_bytes:,} bytes of text can fill, of at most {largest:,}",
                came=f"{recipe.vocab_size:,}",
                remedy="lower it; 512 to 8,192 fits most texts",
            )
        model = recipe.model_config(min(recipe.vocab_size or recipe.least_vocab_size, largest))
        own_parts.check(model)
        context_length = model.context_length
        most = num_bytes + len(self.sources.documents) + TENTHS + 1  # each document, and each tenth, ends with a token
        if context_length + 1 > most:
            raise DataError(
                f"at least {context_length + 1:,} tokens in the training split",
                came=f"a text of {num_bytes:,} bytes, which can make no more than {most:,}",
                remedy=f"choose a context_length below {num_bytes:,}, or give a longer text",
            )

    def text_read(self) -> TextRead:
        """What is to be said of the text."""
        split = self.split
        told = () if split.kind == "passages" else (split.sentence,)
        return TextRead(
            name=facts.as_text(self.name),
            documents=len(self.sources.documents),
            characters=self.sources.characters,
            distinct_characters=len(self.sources.alphabet),
            fingerprint=self.sources.fingerprint,
            notes=(*self.sources.notes, *told),
        )

    def first_facts(self, recipe: Recipe) -> dict[str, Any]:
        """What makes the run what it is, for run.json; the plan is added when it is made."""
        return {
            "format": "pellucid-run",
            "version": 1,
            "name": facts.as_text(self.out.name),
            "command": facts.command(),
            "seed": self.training.seed,
            "data": facts.of_sources(self.sources, facts.as_text(self.name)) | {"held_out": asdict(self.split)},
            "config": {**recipe.as_json(), "training": asdict(self.training)},
        }
