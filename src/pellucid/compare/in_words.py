"""A comparison in words: a table, each difference beside its error, and what was equal and what was not.

In: a `Comparison`.  Out: lines.  Used by: compare_page, the command line.  Read next: compare_page.py.
"""

import re
from collections.abc import Sequence

from pellucid.compare.comparison import BATCHES, Comparison, is_equal
from pellucid.compare.differences import Difference
from pellucid.compare.groups import Group, best
from pellucid.pages.quantities import counted

HEADERS = ("", "bits/character", "spread", "runs", "best step", "tokens", "FLOPs", "seconds", "weights")
MANY = 4  # comparisons; from here on one of them may well look clear by chance
MOST_SHOWN = 48  # letters of a setting's value: the hash of a part of one's own is longer


def lines(comparison: Comparison) -> list[str]:
    """All that the command line prints."""
    rows = [HEADERS, *table_rows(comparison)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    table = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    settings = [f"{name}: {'; '.join(values)}" for name, values in shown_settings(comparison).items()]
    differ = [
        f"They differ in ({'; '.join(group.name for group in comparison.groups)}):",
        *(f"  {s}" for s in settings),
    ]
    return [
        *(line.rstrip() for line in table),
        *verdicts(comparison),
        *(differ if settings else ["Their settings are the same."]),
        *fairness(comparison),
        *warnings(comparison),
    ]


def table_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row of `HEADERS` for each variant."""
    return [_row(group) for group in comparison.groups] + [
        (name, "no result", "", "", "", "", "", "", "") for name in comparison.stopped
    ]


def _row(group: Group) -> tuple[str, ...]:
    error = "" if group.standard_error is None else f" ± {group.standard_error:.3f}"
    sound, first = group.sound, group.runs[0]
    steps = sorted({best(run).step for run in sound})
    bad = sum(bool(run.diverged) for run in group.runs)
    figure = "diverged" if bad and not sound else "no score"
    seconds = [run.seconds for run in group.runs]
    return (
        group.name,
        figure if group.held_out is None else f"{group.held_out:.3f}{error}",
        "" if group.spread is None else f"{group.spread:.3f}",
        str(len(group.runs)) + (f" ({bad} diverged)" if bad and sound else ""),
        "" if not steps else _from_to([f"{step:,}" for step in (steps[0], steps[-1])]),
        short(first.tokens),
        f"{first.flops:.2g}",
        short(sum(seconds) / len(seconds)),
        short(first.plan["parameters"]),
    )


def verdicts(comparison: Comparison) -> list[str]:
    """What can be said of each variant against the first, and what cannot."""
    baseline, found = comparison.baseline, comparison.differences()
    if baseline is None:
        return ["None of the runs has a held-out score."]
    said = [_verdict(one, baseline.name) for one in found]
    said += [f"{run.name} {run.diverged}." for run in comparison.runs if run.diverged]
    said += [f"{name} ended before anything was saved. {sentence}" for name, sentence in comparison.stopped.items()]
    if found and all(len(group.sound) <= 1 for group in comparison.groups):
        said.append("One seed each: another seed may move each figure by more than these intervals know; add seeds.")
    if len(found) >= MANY and any(one.is_clear for one in found):
        said.append(f"Of {len(found)} intervals at 95 %, one in twenty leaves the truth out by chance.")
    return said


def _verdict(one: Difference, baseline: str) -> str:
    how = "better" if one.bits < 0 else "worse"
    figure = f"{one.name} is {abs(one.bits):.3f} bits per character {how} than {baseline}"
    if one.low is None or one.high is None:
        return f"{figure}; no error can be given, so this may be chance."
    ends = sorted((abs(one.low), abs(one.high))) if one.is_clear else (one.low, one.high)
    of = (
        f"{counted(one.passages, 'passage')} x {counted(one.seeds, 'seed')}, paired"
        if one.seeds and one.passages
        else (f"{counted(one.passages, 'passage')}, other seeds" if one.passages else "passages that are not the same")
    )
    if one.is_clear:
        return f"{figure} ({ends[0]:.3f} to {ends[1]:.3f} at 95 %; {of}): larger than its error."
    return (
        f"{one.name} and {baseline} cannot be told apart: {abs(one.bits):.3f} bits per character {how}, and anything"
        f" from {-one.low:.3f} better to {one.high:.3f} worse fits ({of})."
    )


def fairness(comparison: Comparison) -> list[str]:
    """What was equal for all: steps, tokens, FLOPs, seconds, batches, and how the steps were computed."""
    equal, unequal = [], []
    for name, values in comparison.costs().items():
        if is_equal(name, values):
            equal.append(f"{name} ({'about ' * (max(values) > min(values))}{short(max(values))})")
        else:
            unequal.append(f"{name} ({short(min(values))} to {short(max(values))})")
    said = [
        " ".join(
            f"{which}: {', '.join(names)}." for which, names in (("Equal", equal), ("Not equal", unequal)) if names
        )
    ]
    first = comparison.runs[0]
    if comparison.same_batches:
        seeds = ", ".join(str(run.seed) for run in comparison.groups[0].runs)
        shape = f"{first.plan['batch_size']} x {first.plan['model']['context_length']} tokens a step"
        seeds = f"seed {seeds}" if len(comparison.groups[0].runs) == 1 else f"seeds {seeds}"
        said.append(f"The same batches for all: same text, split and tokenizer, {shape}, {seeds}.")
    else:
        names = [name for name in BATCHES if not comparison.same(name)] or ["seed"]
        said.append(f"Not the same batches: {', '.join(map(_other, names))}.")
    ways = list(dict.fromkeys(str(run.plan["variant"]) for run in comparison.runs))
    if len(ways) > 1:
        said.append(f"Not computed alike: {'; '.join(ways)}. A small part of a difference may be rounding.")
    return said


def warnings(comparison: Comparison) -> list[str]:
    """What makes figures incomparable, and runs that are not at their end."""
    said = []
    if not comparison.same("text.fingerprint"):
        said.append(
            "Careful: the texts are not the same, and bits per character of one say little of another's: no difference"
            " is drawn between them. Score the models on one file with pellucid evaluate."
        )
    elif not comparison.same("text.held_out"):
        said.append("Careful: not the same part of the text is held out, so the figures are of other passages.")
    elif not comparison.same("tokenizer.fingerprint"):
        said.append(
            "Tokenizers are not the same: bits per character can be compared all the same, losses per token not."
        )
    unfinished = [run for run in comparison.runs if not run.completed and not run.diverged]
    said += [f"{run.name} has done {run.step:,} of {run.plan['steps']:,} steps." for run in unfinished]
    if any(run.best and not run.best.passage_bits for run in comparison.runs):
        said.append("Some runs are of an older release that kept no figures for each passage: those are not paired.")
    return said


def shown_settings(comparison: Comparison) -> dict[str, list[str]]:
    """What differs, as a person reads it: no hashes."""
    settings = comparison.settings()
    return {
        name: [_shortened(value) for value in values]
        for name, values in settings.items()
        if not name.endswith(".fingerprint") and (name != "text.held_out" or comparison.same("text.fingerprint"))
    }


def short(number: float) -> str:
    """A number with a unit behind it that a person can take in.

    Example:
        >>> short(2.345), short(300), short(1_228_800), short(1.234e15)
        ('2.3', '300', '1.23 M', '1.2e+15')
        >>> short(0.0512), short(0)
        ('0.051', '0')
    """
    for limit, unit in ((1e15, ""), (1e9, " G"), (1e6, " M")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}" if unit else f"{number:.2g}"
    if number >= 10 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 1 else f"{number:.2g}"


def _from_to(ends: Sequence[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _other(name: str) -> str:
    name = name.removesuffix(".fingerprint").removeprefix("model.").replace("text.held_out", "part held out")
    return f"other {name}" if name == "steps" else f"another {name}"


def _shortened(value: object) -> str:
    if value is None or isinstance(value, float):
        return "none" if value is None else f"{value:.4g}"
    value = str(value)
    value = re.sub(r"@([0-9a-f]{8})[0-9a-f]{56}\b", r"@\1…", value)
    return value if len(value) <= MOST_SHOWN else value[: MOST_SHOWN - 1] + "…"
