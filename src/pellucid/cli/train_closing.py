"""What is said at the end of a run: how good, whether it copied, where it is, and what to do with it.

In: a `Finished`.  Out: lines.  Used by: train_screen.py.  Read next: ../train/verdict.py.
"""

import shlex

from pellucid.cli.quoting import one_line
from pellucid.pages.quantities import duration
from pellucid.train import Finished
from pellucid.train.verdict import advice, recites, verdict

WRITTEN = 300  # cells of the closing sample that are shown: four lines of a terminal
QUESTION = 160  # cells of what it is asked
QUOTED = 80  # cells of a copied passage that are shown: a line of a terminal


def closing_lines(event: Finished) -> list[str]:
    """Six to ten lines."""
    out = shlex.quote(event.out)
    lines = []
    if not event.completed:
        cooled = "" if event.cooled_from is None else f", cooled down from step {event.cooled_from:,} on"
        lines.append(f"Stopped after step {event.step:,} of {event.steps:,}{cooled}; everything is saved.")
    lines += verdict(event)
    if event.skipped_steps:
        lines.append(
            f"Skipped: {event.skipped_steps:,} of {event.step:,} steps, whose loss or gradient was not finite: where it"
            " happens often, lower the learning rates."
        )
    if event.sample.strip():
        asked = f"Asked “{one_line(event.question, QUESTION)}”, it answers" if event.question else "It writes"
        lines.append(f"{asked}: {one_line(event.sample, WRITTEN)}")
        lines.append(originality(event))
    text = "; and tokens/, the text itself: share it with care" if event.holds_text else ""
    lines.append(
        f"Saved in {out} after {duration(event.seconds)}: model.safetensors (step {event.best_step:,}), config.json,"
        f" tokenizer.json, run.json, metrics.jsonl, checkpoints/{text}."
    )
    if not event.completed:
        lines.append(f"Go on: pellucid train --resume {out}")
    lines.append(f"Next:  pellucid {'chat' if event.question else 'generate'} {out}")
    return [*lines[:-1], advice(event), lines[-1]] if advice(event) else lines


def originality(event: Finished) -> str:
    """Whether the sample stands in the training text word for word."""
    length, passage = len(event.copied), one_line(event.copied, QUOTED)
    whole = f"the {len(event.sample):,} characters of a sample"
    text = "the text" if event.searched_share == 1 else f"{event.searched_share:.0%} of the text"
    usual = f"; ten unread passages of that length share up to {len(event.usually_shared)} with it"
    usual = "" if event.held_out is None else usual
    if recites(event):
        how = "All of it" if length == len(event.sample) else "In part"
        return f"Copied? {how}: {length:,} of {whole} stand in {text} word for word, “{passage}”{usual}."
    if length:
        blank = ", the rest blank" if 2 * len("".join(event.copied.split())) < length else ""
        quoted = f" (“{passage}”{blank})" if passage else ", all of them blank"
        return f"Copied? No: of {whole}, no more than {length} in a row stand in {text}{quoted}{usual}."
    return f"Copied? No: of {whole}, not one stands in {text}."
