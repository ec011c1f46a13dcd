"""The page of a comparison: the verdict, the table, curves, what differs, and how each figure was come by.

In: a `Comparison`.  Out: HTML.  Used by: the command line.  Read next: ../cli/compare.py.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

from pellucid.compare.comparison import Comparison
from pellucid.compare.differences import Difference
from pellucid.compare.groups import Group, best
from pellucid.compare.in_words import HEADERS, fairness, shown_settings, table_rows, verdicts, warnings
from pellucid.compare.record import Reading
from pellucid.pages import Html, Section, figure, foreign, joined, page, paragraph, table
from pellucid.pages.curves import Level, Series, line_chart

AXES = (
    ("steps", lambda reading: float(reading.step)),
    ("tokens", lambda reading: float(reading.tokens)),
    ("FLOPs", lambda reading: reading.flops),
    ("seconds", lambda reading: reading.seconds),
)
BITS = "held-out bits per character"
MOST_NAMED = 3  # variants in a title
STYLE = """.figures th, .figures td { white-space: nowrap; overflow-wrap: normal; }
.figures svg { width: 12rem; height: 1.2rem; } .figures svg line { stroke-width: 2; vector-effect: non-scaling-stroke; }
@media (max-width: 600px) { .figures svg { width: 5rem; } }
"""
WIDTH, HEIGHT = 192, 16  # of an interval's picture
HOW = """\
Bits per character are of text that no run has read, at the step that was best on half of its passages; ± is the
standard error over passages, the spread is the standard deviation between seeds. Differences are paired: the same
passage, the same seed, one against the other; their 95 % intervals add the error between passages and the error between
seeds, with Student's t. FLOPs are 6 for each token and weight, embedding tables aside, and 12 for each token, key and
width of attention; what is computed twice to save memory is not counted. Seconds are of training, evaluations included,
on the machine of each run."""


def comparison_page(comparison: Comparison, title: str = "") -> str:
    """One self-contained HTML page.

    Args:
        comparison: What to show.
        title: Of the page. Default: the variants' names.
    """
    names = [group.name for group in comparison.groups]
    several = f"{names[0]} and {len(names) - 1} others"
    rows = [_marked(row) for row in table_rows(comparison)]
    return page(
        title or (" · ".join(names) if len(names) <= MOST_NAMED else several),
        [
            Section("", table(["variant", *HEADERS[1:]], rows, kind="figures")),
            Section("Against " + comparison.baseline.name if comparison.baseline else "", _against(comparison)),
            Section("Curves", joined([_curves(comparison), _apart(comparison)])),
            Section("What differs", _settings(comparison)),
            Section("What was equal", joined(paragraph(line) for line in fairness(comparison))),
            Section("Every run", _runs(comparison)),
            Section("How it is computed", paragraph(" ".join(HOW.split()), kind="note")),
        ],
        lead=joined(
            [
                *(paragraph(foreign(line.replace(" %", "\N{NO-BREAK SPACE}%"))) for line in verdicts(comparison)),
                *(paragraph(foreign(line), kind="warn") for line in warnings(comparison)),
            ]
        ),
        style=STYLE,
    )


def _marked(row: Sequence[str]) -> list[str]:
    return [foreign(row[0]), *row[1:]]


def _against(comparison: Comparison) -> Html:
    """Every variant's difference with its interval, drawn to one scale."""
    found = comparison.differences()
    ends = [end for one in found for end in (one.low, one.high, one.bits, 0.0) if end is not None]
    if not found:
        return Html()
    rows = [
        [
            foreign(one.name),
            _interval(one, min(ends), max(ends)),
            f"{one.bits:+.3f}",
            "" if one.low is None else f"{one.low:+.3f} to {one.high:+.3f}",
        ]
        for one in found
    ]
    caption = "Bits per character more than the baseline; left of the line is better. The bar is the interval, at 95 %."
    headers = ["variant", "", "difference", "interval"]
    return joined([table(headers, rows, kind="figures"), paragraph(caption, kind="note")])


def _interval(one: Difference, lowest: float, highest: float) -> Html:
    """A bar from the lower to the upper end, a dot at the difference, a line at 0."""

    def place(value: float) -> str:
        return f"{6 + (WIDTH - 12) * (value - lowest) / ((highest - lowest) or 1.0):.1f}"

    middle, colour = HEIGHT / 2, "var(--series-1)" if one.is_clear else "var(--muted)"
    bar = ""
    if one.low is not None and one.high is not None:
        ends = f'x1="{place(one.low)}" x2="{place(one.high)}" y1="{middle}" y2="{middle}"'
        bar = f'<line {ends} stroke="{colour}"/>'
    return Html(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{one.bits:+.3f}">'
        f'<line x1="{place(0)}" x2="{place(0)}" y1="0" y2="{HEIGHT}" stroke="var(--rule)"/>{bar}'
        f'<circle cx="{place(one.bits)}" cy="{middle}" r="3.5" fill="{colour}"/></svg>'
    )


def _curves(comparison: Comparison) -> Html:
    """Held-out bits against what they cost: the mean of a variant's seeds, in a band from lowest to highest."""
    groups = [group for group in comparison.groups if any(run.readings for run in group.runs)]
    if not groups:
        return Html()
    levels = _yardstick(comparison)
    charts = [
        line_chart(
            [_line(group, cost, lambda reading: reading.held_out) for group in groups],
            x_label=name,
            y_label=BITS,
            levels=levels,
            small=True,
        )
        for name, cost in AXES
    ]
    pictures = "".join(figure(chart) for chart in charts)
    caption = "The mean of the seeds, in a band from the lowest to the highest."
    return joined([Html(f'<div class="pair">{pictures}</div>'), paragraph(caption, kind="note")])


def _yardstick(comparison: Comparison) -> tuple[Level, ...]:
    """The best n-gram table, if all were measured on the same text."""
    yardsticks = comparison.runs[0].facts.get("yardsticks")
    if not yardsticks or not comparison.same("text.fingerprint", "text.held_out"):
        return ()
    return (Level(yardsticks["best_ngram_name"], yardsticks["best_ngram"]),)


def _line(group: Group, cost: Callable[[Reading], float], value: Callable[[Reading], float]) -> Series:
    """A variant's readings, those of its seeds at the same step taken together."""
    steps: dict[int, list[Reading]] = {}
    for run in group.runs:
        for reading in run.readings:
            steps.setdefault(reading.step, []).append(reading)
    together = [steps[step] for step in sorted(steps)]
    values = [[value(reading) for reading in readings] for readings in together]
    several = len(group.runs) > 1
    return Series(
        group.name,
        [statistics.fmean(map(cost, readings)) for readings in together],
        [statistics.fmean(one) for one in values],
        low=[min(one) for one in values] if several else None,
        high=[max(one) for one in values] if several else None,
        points=True,
    )


def _apart(comparison: Comparison) -> Html:
    """How far each variant is from the baseline at every step: what the curves above are too steep to show."""
    baseline = comparison.baseline
    if baseline is None or len(comparison.groups) < 2:
        return Html()
    of_baseline = {(run.seed, reading.step): reading.held_out for run in baseline.runs for reading in run.readings}
    lines = [_distance(group, of_baseline) for group in comparison.groups]  # the baseline too: each keeps its colour
    if sum(len(line.x) > 0 for line in lines) < 2:
        return paragraph(
            "No variant has a seed and a step in common with the baseline: no distance to draw.", kind="note"
        )
    caption = "Below 0 is better. The mean over the seeds that both have; the band is from the lowest to the highest."
    return figure(line_chart(lines, x_label="steps", y_label=f"{BITS}, less the baseline's"), caption)


def _distance(group: Group, of_baseline: Mapping[tuple[int, int], float]) -> Series:
    shared: dict[int, list[float]] = {}
    for run in group.runs:
        for reading in run.readings:
            there = of_baseline.get((run.seed, reading.step))
            if there is not None:
                shared.setdefault(reading.step, []).append(reading.held_out - there)
    rows = [shared[step] for step in sorted(shared)]
    several = len(group.runs) > 1
    return Series(
        group.name,
        sorted(shared),
        [statistics.fmean(row) for row in rows],
        low=[min(row) for row in rows] if several else None,
        high=[max(row) for row in rows] if several else None,
        points=True,
    )


def _settings(comparison: Comparison) -> Html:
    settings = shown_settings(comparison)
    if not settings:
        return paragraph("Nothing that was decided: only seeds, machines and moments.")
    headers = ["setting", *(group.name for group in comparison.groups)]
    return table(headers, [[name, *map(foreign, values)] for name, values in settings.items()], kind="figures")


def _runs(comparison: Comparison) -> Html:
    rows = [
        [
            foreign(run.name),
            str(run.seed),
            f"{best(run).held_out:.3f}" if run.best else "",
            f"{best(run).step:,}" if run.best else "",
            f"{run.step:,} of {run.plan['steps']:,}",
            run.diverged or ("" if run.completed else "not finished"),
            f"{run.seconds:,.0f}",
        ]
        for run in comparison.runs
    ]
    return table(["run", "seed", "bits/character", "best step", "steps", "", "seconds"], rows, kind="figures")
