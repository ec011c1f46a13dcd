"""`pellucid prepare SOURCE… --out DIR`: much text, once, into token files for many runs.

In: flags.  Out: a prepared folder, its data card on the screen.  Used by: main.  Read next: prepare_flags.py.
"""

from collections.abc import Sequence

from pellucid.cli.arguments import parse
from pellucid.cli.prepare_flags import PrepareFlags


def main(words: Sequence[str]) -> int:
    """Run the verb."""
    flags = parse(PrepareFlags, words, "prepare")
    if not flags.json:
        print("pellucid prepare: reading the text.", flush=True)
    from pellucid.cli.prepare_run import carry_out

    return carry_out(flags)
