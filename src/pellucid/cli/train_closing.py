"""What is said at the end of a run: how good, whether it copied, where it is, and what to do with it.

Every line must be true however the run ended: completed or stopped, better or worse than a table of letters, better
and better or only until it knew the text by heart.

In: a `Finished`.  Out: lines.  Used by: train_screen.py.  Read next: ../train/events.py.
"""

import math
import shlex

from pellucid.train import Finished

WRITTEN = 300  # characters of the closing sample that are shown: four lines of a terminal
QUOTED = 80  # characters of a copied passage that are shown: a line of a terminal
RECITED = 50  # characters: ten words in a row are hardly written twice by chance


def closing_lines(event: Finished) -> list[str]:
    """Four to seven lines."""
    out = shlex.quote(event.out)
    lines = []
    if not event.completed:
        lines.append(f"Stopped after step {event.step:,} of {event.steps:,}; everything is saved.")
    lines.append(judgement(event))
    if event.skipped_steps:
        lines.append(
            f"Skipped: {event.skipped_steps:,} of {event.step:,} steps, whose loss or gradient was not finite: where it"
            " happens often, lower the learning rates."
        )
    if event.sample.strip():
        lines.append(f"It writes: {one_line(event.sample, WRITTEN)}")
        lines.append(originality(event))
    lines.append(
        f"Saved in {out} after {duration(event.seconds)}: model.safetensors (step {event.best_step:,}), config.json,"
        " tokenizer.json, metrics.jsonl, checkpoints."
    )
    if not event.completed:
        lines.append(f"Go on: pellucid train --resume {out}")
    lines.append(f"Next:  pellucid generate {out}")
    return lines


def judgement(event: Finished) -> str:
    """An honest sentence about the held-out loss."""
    figure = f"On text it never read: {event.held_out:.3f} bits per character"
    if event.standard_error is not None:
        figure += f" (± {event.standard_error:.3f}; {event.held_out_odd:.3f} on the half that did not choose the step)"
    if not event.completed:
        figure += ", so far."
    elif event.steps == event.planned_steps:
        figure += f", after {event.step:,} steps."
    else:
        figure += f", after {event.step:,} steps ({event.planned_steps:,} were planned at first)."
    return " ".join(part for part in (figure, against_tables(event), kept_step(event)) if part)


def against_tables(event: Finished) -> str:
    """How the figure stands beside the best n-gram and xz, and what would help."""
    error = event.standard_error or 0.0
    ngram, xz = event.yardsticks["best_ngram"], event.yardsticks["xz"]
    name = event.yardsticks["best_ngram_name"]
    table = "counting letters" if name == "letters" else f"the best table of letter sequences, {name}"
    if event.held_out + error < ngram:
        than_xz = f" and than xz ({xz:.2f})" if event.held_out < xz else f", though not than xz ({xz:.2f})"
        return f"Better than {table} ({ngram:.2f}){than_xz}."
    verdict = f"Worse than {table} ({ngram:.2f})"
    if event.held_out <= ngram + error:
        verdict = f"About as good as {table} ({ngram:.2f})"
    if learned_by_heart(event):
        return f"{verdict}: more text would help."
    return f"{verdict}: more time{'' if event.completed else ', as this run has left,'} or more text would help."


def kept_step(event: Finished) -> str:
    """Which step was kept, if it is not the last."""
    if learned_by_heart(event):
        return (
            f"It was best at step {event.best_step:,}, which is what was kept; from there on it learned the text by"
            f" heart and did worse on the rest ({event.last_held_out:.3f} at the end)."
        )
    return f"Its best step, {event.best_step:,}, is what was kept." if event.best_step < event.step else ""


def learned_by_heart(event: Finished) -> bool:
    """Whether the end is worse than the best step, by more than chance, while the text that was read went on better."""
    got_worse = event.last_held_out > event.held_out + (event.standard_error or 0.0)
    return got_worse and event.train is not None and event.train < event.held_out


def originality(event: Finished) -> str:
    """Whether the sample stands in the training text word for word."""
    length, passage = len(event.copied), one_line(event.copied, QUOTED)
    whole = f"the {len(event.sample):,} characters of a sample"
    if length >= RECITED:
        return f"Copied? In part: {length:,} of {whole} stand in the text word for word, “{passage}”."
    if length:
        quoted = f" (“{passage}”)" if passage else ", all of them blank"
        return f"Copied? No: of {whole}, no more than {length} in a row stand in the text{quoted}."
    return f"Copied? No: of {whole}, not one stands in the text."


def one_line(text: str, characters: int) -> str:
    """A text with its white space made into single spaces, cut to so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= characters else f"{text[:characters]} …"


def counted(number: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> counted(1, "layer"), counted(1200, "step")
        ('1 layer', '1,200 steps')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    Example:
        >>> duration(7.6), duration(75), duration(7500)
        ('8 s', '1:15 min', '2:05 h')
    """
    if not math.isfinite(seconds):
        return "unknown time"
    minutes, rest = divmod(max(0, round(seconds)), 60)
    if minutes >= 60:
        return f"{minutes // 60}:{minutes % 60:02d} h"
    return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"
