"""What a run begins with when it begins from a model: its weights, its tokenizer, and what it is.

The model may be any that `pellucid.load` opens. Its weights become float32 whatever they are stored in, since steps
are too small for narrower numbers; tokens may be added to its vocabulary.

In: a path.  Out: `Start`.  Used by: request, assembly, run.  Read next: gentle_recipe.py.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pellucid.checkpoint import sha256_of
from pellucid.errors import ModelFileError
from pellucid.loading import load
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.text import CHATML, CHATML_TOKENS, ChatTemplate, TextTokenizer, with_new_tokens
from pellucid.train import facts
from pellucid.train.events import StartOpened
from pellucid.train.new_rows import with_new_rows


@dataclass(frozen=True, kw_only=True)
class Start:
    """A model to go on from, as it is where it lies. Made by `open` or `again`."""

    path: Path
    model_config: ModelConfig
    num_parameters: int
    own_tokenizer: TextTokenizer
    """The model's, without the tokens that are added."""
    end_ids: frozenset[int]
    sha256: str
    """Of its weights."""
    added: tuple[str, ...] = ()
    """Names of special tokens that it gets."""
    chat_template: str | None = None
    """How it turns a chat into one text, if it does."""

    @classmethod
    def open(cls, path: Path, added: Sequence[str] = ()) -> "Start":
        """Look at a model; its weights are let go again until `model` asks for them.

        Raises:
            ModelFileError: if there is none that can be read.
            TokenizerError: if a token cannot be added.
        """
        loaded = load(path)
        start = cls(
            path=path,
            model_config=loaded.model.config,
            num_parameters=loaded.model.num_parameters(),
            own_tokenizer=loaded.tokenizer,
            end_ids=loaded.end_ids,
            sha256=weights_hash(path),
            added=tuple(dict.fromkeys(added)),
            chat_template=loaded.chat_template,
        )
        start.config({})
        return start

    @classmethod
    def again(cls, kept: Mapping[str, Any]) -> "Start":
        """The model that a run has begun with, if it is still what it was.

        Args:
            kept: What `facts` gave then.

        Raises:
            ModelFileError: if it is gone or has changed.
        """
        path = Path(kept["path"])
        found = weights_hash(path) if path.exists() else None
        if found != kept["sha256"]:
            raise ModelFileError(
                f"the model that the run began with, at '{path}'",
                came="nothing there" if found is None else "one with other weights",
                remedy="put it back; the run needs it",
            )
        return cls.open(path, kept["added_tokens"])

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """The model's, with the tokens that are added."""
        return with_new_tokens(self.own_tokenizer, self.added)

    def config(self, changes: Mapping[str, Any]) -> ModelConfig:
        """What the model will be.

        Args:
            changes: Fields that change no weight: dropout.
        """
        config, num_ids = self.model_config, self.tokenizer.vocab_size
        size = max(config.vocab_size, num_ids)
        return replace(config, vocab_size=size, num_unused_ids=size - num_ids, **changes)

    def model(self, changes: Mapping[str, Any]) -> TransformerLM:
        """The model, in float32.

        Args:
            changes: As for `config`.
        """
        return with_new_rows(load(self.path).model, self.config(changes))

    @property
    def has_new_tokens(self) -> bool:
        """Whether it gets tokens that it has not had."""
        return self.tokenizer.vocab_size > self.own_tokenizer.vocab_size

    def for_chats(self) -> "Start":
        """The same, able to learn chats: one that has no template of its own gets ChatML, and the tokens it needs."""
        if self.chat_template is not None:
            return self
        added = tuple(dict.fromkeys((*self.added, *CHATML_TOKENS)))
        return replace(self, added=added, chat_template=CHATML)

    def template(self) -> ChatTemplate:
        """How chats are written for it.

        Raises:
            TokenizerError: if its template cannot be rendered safely.
        """
        return ChatTemplate(self.chat_template or CHATML, self.tokenizer)

    def opened(self) -> StartOpened:
        """What is to be said of it."""
        there = self.own_tokenizer.special_tokens
        return StartOpened(
            name=facts.as_text(self.path),
            parameters=self.num_parameters,
            vocab_size=self.tokenizer.vocab_size,
            context_length=self.model_config.context_length,
            new_tokens=tuple(name for name in self.added if name not in there),
        )

    def facts(self) -> dict[str, Any]:
        """Where it is, what it is, and what goes over to the run, for run.json."""
        return {
            "from": {
                "path": facts.as_text(self.path.absolute()),
                "sha256": self.sha256,
                "added_tokens": list(self.added),
            },
            "end_ids": sorted(self.end_ids),
        }


def weights_hash(path: Path) -> str:
    """SHA-256 of a model's weights: of the file, or of a folder's .safetensors, of several over theirs in order."""
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    each = [sha256_of(file) for file in files]
    return each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()
