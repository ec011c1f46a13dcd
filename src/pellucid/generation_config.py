"""How a model writes: the settings of sampling and stopping, and nothing that needs torch.

The docstring under each field is its help text on the command line.

In: field values.  Out: `GenerationConfig`.  Used by: generate, load, train, the command line.
Read next: generate/sampling.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pellucid.errors import GenerationError

Precision = Literal["auto", "float32", "bfloat16", "int8"]
"""What weights are held in while a model writes; auto: as they are stored."""
PRECISIONS: tuple[str, ...] = get_args(Precision)


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """How to choose tokens, and when to stop.

    Raises:
        GenerationError: if a value lies outside its range.

    Example:
        >>> GenerationConfig(max_tokens=20, stop=("\\n",)).stop
        ('\\n',)
    """

    max_tokens: int = 200
    """How many tokens to write at most, the prompt not counted."""
    temperature: float = 0.8
    """Below 1: rather the likely tokens; above: rather the others; 0: always the likeliest."""
    top_k: int | None = None
    """Choose among this many likeliest tokens only."""
    top_p: float = 1.0
    """Choose among the likeliest tokens that together reach this probability; 1 is all of them."""
    min_p: float = 0.0
    """Choose among tokens at least this many times as likely as the likeliest."""
    stop: tuple[str, ...] = ()
    """Stop before this text; may be given several times."""
    seed: int | None = None
    """The same seed writes the same text. Default: drawn, and told."""
    num_samples: int = 1
    """How many texts to write from each prompt; text i has the seed plus i."""
    truncate_prompt: bool = False
    """Drop the beginning of a prompt that is longer than the model's context, instead of refusing it."""

    raw: bool = False
    """Let tokens that are parts of characters come in any order, broken characters and all."""

    def __post_init__(self) -> None:
        if isinstance(self.stop, str):
            object.__setattr__(self, "stop", (self.stop,))
        object.__setattr__(self, "stop", tuple(self.stop))
        self._require_whole("max_tokens", 0)
        self._require_whole("num_samples", 1)
        if self.top_k is not None:
            self._require_whole("top_k", 1)
        if self.seed is not None:
            self._require_whole("seed", 0, 2**63 - 1)  # what a torch.Generator takes
        self._require_number("temperature", math.inf)
        self._require_number("top_p", 1.0)
        self._require_number("min_p", 1.0)
        for text in self.stop:
            if not isinstance(text, str) or not text:
                raise GenerationError(
                    "stop to be text of one character or more", came=repr(text), remedy="leave it out"
                )

    def _require_whole(self, name: str, least: int, most: int | None = None) -> None:
        value = getattr(self, name)
        bounds = f"a whole number of {least} or more" if most is None else f"a whole number from {least} to {most}"
        whole = _is_number(value) and math.isfinite(value) and int(value) == value
        if not whole or value < least or (most is not None and value > most):
            raise GenerationError(f"{name} to be {bounds}", came=repr(value), remedy=f"choose another {name}")
        object.__setattr__(self, name, int(value))

    def _require_number(self, name: str, most: float) -> None:
        value = getattr(self, name)
        bounds = "0 or more" if most == math.inf else f"from 0 to {most:g}"
        if not _is_number(value) or not 0 <= value <= most or value == math.inf:
            raise GenerationError(f"{name} to be a number, {bounds}", came=repr(value), remedy=f"choose another {name}")
        object.__setattr__(self, name, float(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
