"""The flags of `pellucid prepare`.

In: words.  Out: `PrepareFlags`.  Used by: prepare.py.  Read next: prepare_run.py.
"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from pellucid.cli.values import Text, WholeNumber


@dataclass(kw_only=True)
class PrepareFlags:
    """Turn text into token files, once, for many runs: then pellucid train DIR begins within seconds.

    Works on all cores, within bounded memory. Ended at any moment, the same command goes on where it was. Prints the
    text's data card; DIR/card.json keeps it.
    """

    sources: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[SOURCE ...]", help_behavior_hint="")
    ] = ()
    """What pellucid train reads: files and folders of text, tables, documents, packed or not; and hub:DATASET."""
    out: Text = None
    """The folder to make. Needed."""
    tokenizer: Text = None
    """char, bpe, or the path of a tokenizer.json, or of a folder with one. Default: what fits the text."""
    vocab_size: WholeNumber = None
    """How many ids bpe learns. Default: what fits the text."""
    encoding: Text = None
    """The encoding of the files, if it is not UTF-8."""
    text_column: Text = None
    """Which column of tables is text. Default: the only one that can be."""
    drop_boilerplate: bool = False
    """Leave out licences around books, page numbers and running heads; they are told in any case."""
    held_out: WholeNumber = None
    """How many percent of the text to hold out, to be scored on. Default: 5; 0 learns from all of it."""
    processes: WholeNumber = None
    """How many processes encode. Default: one for each core, fewer for a short text."""
    json: bool = False
    """Print the card as one JSON object, and nothing else."""
