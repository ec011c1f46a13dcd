"""`pellucid evaluate RUN FILE…`: how well a model predicts a text, beside what simple predictors make of it.

In: flags.  Out: figures on the screen, or JSON, or a page.  Used by: main.  Read next: evaluate_run.py.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from pellucid.cli.arguments import parse
from pellucid.cli.values import Text, WholeNumber
from pellucid.training_config import Device


@dataclass(kw_only=True)
class EvaluateFlags:
    """Score text with a model, in bits per character, beside simple predictors of the same text."""

    run: tyro.conf.Positional[str]
    """The folder that `pellucid train` wrote."""
    files: tyro.conf.Positional[tuple[str, ...]] = ()
    """Files or folders that `pellucid train` reads, or - for standard input. Default: the passages that the run held
    out, scored as in training."""
    stride: WholeNumber = None
    """How many tokens the window moves on, up to the context: each token is predicted from at least context - stride
    tokens before it. Default: half the context; for the run's own passages the whole of it, as in training."""
    tokens: Text = None
    """Also write a page (.html) that shows every token's surprise as a colour."""
    encoding: Text = None
    """The encoding of the files, if it is not UTF-8."""
    text_column: Text = None
    """Which column of a .csv or .jsonl file is text. Default: the only one that can be."""
    device: Device = "auto"
    """Where the model computes; auto takes a CUDA device if there is one."""
    json: bool = False
    """One JSON object with all figures."""


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(EvaluateFlags, words, "evaluate")
    if not flags.json:  # before anything slow is imported: a person shall see at once that it has begun
        print("pellucid evaluate: reading the text and starting torch, a few seconds.", file=sys.stderr, flush=True)
    from pellucid.cli.evaluate_run import carry_out

    carry_out(flags)
