"""The flags of `pellucid evaluate`.

In: words.  Out: `EvaluateFlags`.  Used by: evaluate.py.  Read next: evaluate_run.py.
"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from pellucid.cli.values import Text, WholeNumber
from pellucid.generation_config import Precision
from pellucid.training_config import Device


@dataclass(kw_only=True)
class EvaluateFlags:
    """Score text with a model, in bits per character, beside simple predictors of the same text."""

    run: tyro.conf.Positional[str]
    """The folder that `pellucid train` wrote, a Hugging Face model's folder, or a GGUF file."""
    files: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[FILE ...]", help_behavior_hint="")
    ] = ()
    """Files or folders that `pellucid train` reads, or - for standard input. Default: what the run held out, scored
    as in training; of chats their answers."""
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
    precision: Precision = "auto"
    """What the weights are held in; auto: as they are stored. In another, the text is scored in both, and what the
    difference costs is said."""
    own_code: bool = False
    """Run the code in the model's own_parts/, if it was made with parts that somebody wrote; read it first."""
    json: bool = False
    """One JSON object with all figures."""
