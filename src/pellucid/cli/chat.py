"""`pellucid chat MODEL`: a conversation with a model, on a terminal or through a pipe.

In: flags.  Out: answers.  Used by: main.  Read next: chat_run.py.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import tyro

from pellucid.cli.arguments import parse, text_argument
from pellucid.cli.values import Text
from pellucid.generation_config import GenerationConfig, Precision


@dataclass(kw_only=True)
class ChatFlags:
    """Talk with a model. Without a terminal every line of standard input is a message."""

    model: tyro.conf.Positional[str]
    """A run's folder, a Hugging Face model's folder, or a GGUF file."""
    system: Text = None
    """What the model is told before everything. Default: what its template says."""
    max_tokens: int = 1000
    """How many tokens an answer has at most."""
    temperature: float = 0.7
    """Below 1: rather the likely tokens; above: rather the others; 0: always the likeliest."""
    top_k: int | None = None
    """Choose among this many likeliest tokens only."""
    top_p: float = 1.0
    """Choose among the likeliest tokens that together reach this probability; 1 is all of them."""
    min_p: float = 0.0
    """Choose among tokens at least this many times as likely as the likeliest."""
    stop: tuple[str, ...] = field(default_factory=tuple)
    """End an answer before this text; may be given several times."""
    seed: int | None = None
    """The same seed and messages give the same answers; answer i has the seed plus i. Default: drawn, and told."""
    show_ids: bool = False
    """Show the ids that the model is given, before each answer."""
    precision: Precision = "auto"
    """What the weights are held in; auto: as they are stored. int8 is the fastest, and a little less exact."""
    own_code: bool = False
    """Run the code in the model's own_parts/, if it was made with parts that somebody wrote; read it first."""
    json: bool = False
    """One JSON object a line for each answer, with its seed, token counts and why it ended."""

    @property
    def config(self) -> GenerationConfig:
        """How answers are written."""
        return GenerationConfig(
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            stop=tuple(map(text_argument, self.stop)),
            seed=self.seed,
        )


def main(words: Sequence[str]) -> int:
    """Run the verb."""
    flags = parse(ChatFlags, words, "chat")
    config = flags.config
    if sys.stderr.isatty():  # before anything slow is imported: a person shall see at once that it has begun
        print("pellucid chat: opening the model.", file=sys.stderr, flush=True)
    from pellucid.cli.chat_run import carry_out

    return carry_out(flags, config)
