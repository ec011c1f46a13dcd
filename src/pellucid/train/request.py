"""What somebody asked for, and the recipe it comes to.

In: sources, flags.  Out: `Request`.  Used by: the command line, run.  Read next: material.py.
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pellucid import own_parts
from pellucid.data import ChatSources, PreparedText, Sources, Split, split_of
from pellucid.data.split import TENTHS
from pellucid.errors import ConfigError, DataError
from pellucid.train import facts
from pellucid.train.device import Capabilities, check_device
from pellucid.train.events import TextRead
from pellucid.train.gentle_recipe import FACTORS_RATE, choose_gentle_recipe
from pellucid.train.material import AnyText
from pellucid.train.recipe import Recipe, choose_recipe
from pellucid.train.start import Start
from pellucid.training_config import TrainingConfig

DEFAULT_MINUTES = 5.0
CHANGEABLE = frozenset({"context_length", "dropout"})
"""Fields of a model to go on from that may be others: of its rows, and one without weights."""


def minutes_of(training: TrainingConfig) -> float | None:
    """The minutes of a run, or None for one that is counted in steps from the start."""
    return None if training.steps else training.minutes or DEFAULT_MINUTES


@dataclass(frozen=True, kw_only=True)
class Request:
    """A run, as it was asked for."""

    sources: AnyText
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
    start: Start | None = None
    """The model to go on from; None begins with new weights."""

    @property
    def split(self) -> Split:
        """How the text is split."""
        return split_of(self.sources) if isinstance(self.sources, Sources) else self.sources.split

    @property
    def minutes(self) -> float | None:
        """Minutes, or None for a run that is counted in steps from the start."""
        return minutes_of(self.training)

    def recipe(self) -> Recipe:
        """The planner's recipe with everything that was asked for put over it.

        Raises:
            ConfigError: if that makes no model.
        """
        device = check_device(self.training.device, Capabilities.of_this_machine())
        chosen = self._chosen(device)
        chats = isinstance(self.sources, ChatSources)
        self._check_factors()
        if chats and self.start is None:
            raise ConfigError(
                "a model that has learned to read, for chats to teach it to answer",
                came="none",
                remedy="name one with --from MODEL: a run, a Hugging Face folder or a .gguf file",
            )
        everything = device != "cpu" or self.training.steps is not None or chats
        if isinstance(self.sources, PreparedText):
            self._require_own_tokenizer("a prepared folder", "prepare the text anew with it")
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

    def _chosen(self, device: str) -> Recipe:
        """The planner's recipe for this text, or for this text and the model it goes on from."""
        if self.start is None:
            minutes, letters = self.minutes or DEFAULT_MINUTES, len(self.sources.alphabet)
            return choose_recipe(self.sources.characters, minutes, self.preset, letters)
        self._require_own_shape(self.start)
        return choose_gentle_recipe(
            self.start.model_config,
            self.start.num_parameters,
            self.sources.characters,
            device=device,
            rate=FACTORS_RATE if self.training.lora else 1.0,
        )

    def _check_factors(self) -> None:
        """Refuse low-rank factors that have nothing to stand beside."""
        if self.training.lora and (self.start is None or self.training.shard):
            raise ConfigError(
                "a model for --lora to leave as it is, whole in each process",
                came="none: --from names it" if self.start is None else "--shard, which cuts it",
                remedy="add --from MODEL, or leave --lora out" if self.start is None else "leave --shard out",
            )

    def _require_own_shape(self, start: Start) -> None:
        """Refuse what would make another model than the one to go on from."""
        self._require_own_tokenizer("the model", "leave --from out to begin anew with it")
        fixed = [f"--model.{name.replace('_', '-')}" for name in self.model if name not in CHANGEABLE]
        fixed += [f"--preset {self.preset}"] * (self.preset != "default")
        if fixed:
            raise ConfigError(
                "the shape of the model to go on from, whose weights it is the shape of",
                came=f"{fixed[0]} beside --from",
                remedy="leave it out; --model.dropout, and rows of a shorter --model.context-length, may be chosen",
            )
        asked, most = self.model.get("context_length"), start.model_config.context_length
        if asked and asked > most:
            raise ConfigError(
                f"rows of at most {most:,} tokens, the context of the model to go on from",
                came=f"--model.context-length {asked:,}",
                remedy="choose a shorter one",
            )

    def _require_own_tokenizer(self, whose: str, remedy: str) -> None:
        if self.tokenizer or self.vocab_size:
            asked = f"the tokenizer {self.tokenizer}" if self.tokenizer else f"vocab_size={self.vocab_size}"
            raise ConfigError(
                f"{whose}'s own tokenizer, which its tokens were made with",
                came=f"{asked} beside it",
                remedy=f"leave it out, or {remedy}",
            )

    def _with_tokens_per_step(self, recipe: Recipe) -> Recipe:
        """As many rows as make the tokens per step that were asked for."""
        tokens = self.training.tokens_per_step
        if tokens is None:
            return recipe
        context_length = self._context_length(recipe, recipe.vocab_size or recipe.least_vocab_size)
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
        context_length = self._context_length(recipe, min(recipe.vocab_size or recipe.least_vocab_size, largest))
        if isinstance(self.sources, ChatSources):
            return  # rows are filled up
        most = num_bytes + len(self.sources.documents) + TENTHS + 1  # each document, and each tenth, ends with a token
        if context_length + 1 > most:
            raise DataError(
                f"at least {context_length + 1:,} tokens in the training split",
                came=f"a text of {num_bytes:,} bytes, which can make no more than {most:,}",
                remedy=f"choose a context_length below {num_bytes:,}, or give a longer text",
            )

    def _context_length(self, recipe: Recipe, vocab_size: int) -> int:
        """Tokens in a row; the model is made to see whether it can be."""
        if self.start is not None:
            self.start.config({name: value for name, value in recipe.model.items() if name == "dropout"})
            return recipe.model["context_length"]
        model = recipe.model_config(vocab_size)
        own_parts.check(model)
        return model.context_length

    def text_read(self) -> TextRead:
        """What is to be said of the text."""
        split = self.split
        told = () if split.kind == "passages" or isinstance(self.sources, ChatSources) else (split.sentence,)
        return TextRead(
            name=facts.as_text(self.name),
            documents=len(self.sources.documents),
            characters=self.sources.characters,
            distinct_characters=len(self.sources.alphabet),
            fingerprint=self.sources.fingerprint,
            notes=(*self.sources.notes, *told),
            are_chats=isinstance(self.sources, ChatSources),
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
        } | ({} if self.start is None else self.start.facts())
