"""`pellucid evaluate RUN FILE…`: how well a model predicts a text, beside what simple predictors make of it.

In: flags.  Out: figures on the screen, or JSON, or a page.  Used by: main.  Read next: evaluate_flags.py.
"""

import sys
from collections.abc import Sequence

from pellucid.cli.arguments import parse
from pellucid.cli.evaluate_flags import EvaluateFlags


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(EvaluateFlags, words, "evaluate")
    if not flags.json:  # before anything slow is imported: a person shall see at once that it has begun
        print("pellucid evaluate: reading the text and starting torch, a few seconds.", file=sys.stderr, flush=True)
    from pellucid.cli.evaluate_run import carry_out

    carry_out(flags)
