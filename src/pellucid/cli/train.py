"""`pellucid train SOURCE…`: from a text to a model that writes; or from a recipe, to one or several.

In: flags.  Out: a run folder, lines on the screen.  Used by: main.  Read next: train_screen.py.
"""

import os
import time
from collections.abc import Sequence

from pellucid.cli.said_once import said_once
from pellucid.errors import UserError

BEGUN = time.monotonic()


def main(words: Sequence[str]) -> int:
    """Run the verb."""
    if not {"-h", "--help"} & set(words) and os.environ.get("RANK", "0") == "0":
        # Before anything slow is imported: a person shall see at once that it has begun.
        print("pellucid train: reading the text and starting torch, a few seconds.", flush=True)
    from pellucid.cli.train_flags import parse_flags
    from pellucid.cli.train_recipe import composed, recipe_in

    with said_once():
        flags = parse_flags(words)
        recipe = recipe_in(flags)
        if recipe is not None and recipe.is_series and os.environ.get("WORLD_SIZE", "1") != "1":
            raise UserError("one process for a recipe of several runs", came="several", remedy="leave torchrun out")
    if recipe is not None and recipe.is_series:
        from pellucid.cli.train_series import carry_out_series

        return carry_out_series(recipe, flags)
    from pellucid.cli.train_run import carry_out

    return carry_out(flags if recipe is None else composed(recipe, flags), BEGUN)
