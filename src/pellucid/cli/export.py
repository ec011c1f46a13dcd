"""`pellucid export MODEL --format hf|gguf --out PATH`: hands a model on, in files that other programs open.

In: flags.  Out: a folder or a file, and what was compared.  Used by: main.  Read next: export_flags.py.
"""

import sys
from collections.abc import Sequence

from pellucid.cli.arguments import parse
from pellucid.cli.export_flags import ExportFlags


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(ExportFlags, words, "export")
    if not flags.json:  # before anything slow is imported: a person shall see at once that it has begun
        print("pellucid export: opening the model and starting torch, a few seconds.", file=sys.stderr, flush=True)
    from pellucid.cli.export_run import carry_out

    carry_out(flags)
