"""`pellucid import PATH --out RUN`: makes somebody else's model a run that every verb opens and training goes on from.

In: flags.  Out: a run folder.  Used by: main.  Read next: ../convert/run_import.py.
"""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

import pellucid
from pellucid.cli.arguments import parse
from pellucid.cli.printable import printable, printable_json
from pellucid.cli.values import Text


@dataclass(kw_only=True)
class ImportFlags:
    """Make a model from elsewhere a run: a Hugging Face folder, a GGUF file, or a checkpoint (.pt, .pth) of nanoGPT,
    CS336 or LLMs-from-scratch. Numbers are kept to the last bit."""

    model: tyro.conf.Positional[str]
    """The folder or file."""
    out: str
    """The run folder to write. There must be nothing yet."""
    tokenizer: Text = None
    """A tokenizer.json, or a model with one, for a checkpoint that has none beside it."""
    json: bool = False
    """Say what was imported as a JSON object."""


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(ImportFlags, words, "import")
    if not flags.json:
        print("pellucid import: opening the model and starting torch, a few seconds.", file=sys.stderr, flush=True)
    from pellucid.convert.any_tokenizer import load_any_tokenizer
    from pellucid.convert.run_import import import_model
    from pellucid.convert.unfinished import refuse_existing
    from pellucid.loading import open_foreign_or_checkpoint

    out, path = Path(flags.out), Path(flags.model)
    refuse_existing(out)
    tokenizer = None if flags.tokenizer is None else load_any_tokenizer(Path(flags.tokenizer))
    foreign = open_foreign_or_checkpoint(path, tokenizer)
    command = ["pellucid", "import", *words]
    run = import_model(foreign, path, out, {"command": command, "environment": {"pellucid": pellucid.__version__}})
    size = (run.path / "model.safetensors").stat().st_size
    if flags.json:
        told = {"run": str(run.path), "from": foreign.kind, "bytes": size, "notes": list(foreign.notes)}
        print(printable_json(told))
        return
    for sentence in foreign.notes:
        print(printable(sentence))
    config, name = foreign.config, shlex.quote(str(run.path))
    shape = f"{config.num_layers} layers of width {config.d_model}, {size / 1e6:,.0f} MB"
    print(printable(f"Imported {foreign.kind}: {shape}. It is a run like any other:"))
    print(printable(f"  pellucid generate {name}"))
    print(printable(f"  pellucid train book.txt --from {name}"))
