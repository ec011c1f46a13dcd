"""A model as somebody else's files hold it: what it is has been read, its weights lie ready.

In: what a reader found.  Out: `TransformerLM`, or weights under our names.  Used by: loading, the command line.
Read next: huggingface.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from pellucid.convert.filling import Weights, as_stored, filled
from pellucid.convert.names import Family
from pellucid.errors import TokenizerError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer, fitted


@dataclass(frozen=True, kw_only=True)
class ForeignModel:
    """A model whose weights have not been read yet."""

    kind: str
    """What holds it, in words: a Hugging Face folder, a GGUF file, a checkpoint of nanoGPT."""
    config: ModelConfig
    family: Family
    weights: Weights
    tokenizer: TextTokenizer | None
    """None if the files have none."""
    end_ids: frozenset[int] = frozenset()
    """Ids that end what it writes."""
    chat_template: str | None = None
    """How a chat becomes one text, in the words of Jinja."""
    notes: tuple[str, ...] = ()
    """Sentences that are to be said: what was left out, and why."""
    files: tuple[Path, ...] = ()
    """The files with its weights."""
    told_by: str = "config.json"
    """What says what the model is, for messages."""
    number_type: torch.dtype | None = None
    """The type its weights are used in. Default: bfloat16 if all are kept in it, else float32."""

    def __post_init__(self) -> None:
        if self.tokenizer is None:
            return
        tokenizer = fitted(self.tokenizer, self.config.vocab_size)
        object.__setattr__(self, "tokenizer", tokenizer)
        unused = self.config.vocab_size - tokenizer.vocab_size
        object.__setattr__(self, "config", replace(self.config, num_unused_ids=unused))

    def model(self) -> TransformerLM:
        """The model, on the CPU, in evaluation mode.

        Raises:
            ModelFileError: if the weights are not those of the model, naming what is wrong; or are quantised in a way
                that is not known here.
        """
        return filled(self.weights, self.family, self.config, dtype=self.number_type, told_by=self.told_by)

    def tensors(self) -> dict[str, Tensor]:
        """Its weights under our names, to the last bit as they are kept.

        Raises:
            ModelFileError: as for `model`.
        """
        return as_stored(self.weights, self.family, self.config, told_by=self.told_by)

    def required_tokenizer(self) -> TextTokenizer:
        """Its tokenizer.

        Raises:
            TokenizerError: if its files have none.
        """
        if self.tokenizer is None:
            raise TokenizerError(
                f"a tokenizer beside {self.kind}", came="none", remedy="name one: a tokenizer.json, or a model with one"
            )
        return self.tokenizer
