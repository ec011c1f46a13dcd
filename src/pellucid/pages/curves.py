"""Curves as SVG inside a page, drawn by matplotlib and painted by the page's own style sheet.

A line's name may be in any script, so names stand in HTML, above the picture; inside it are figures and the short
English names of levels. The picture is drawn twice, for a page and for a phone: shrunk letters cannot be read.

In: numbers.  Out: `Html`.  Used by: report, compare.  Read next: ../report/.
"""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from pellucid.pages.markup import Html, escaped, foreign
from pellucid.pages.style import SERIES

MOST_POINTS = 400  # of a line: two for each point of a screen that a phone is wide
INCH = 72  # SVG's points, one a CSS pixel
WIDE, NARROW = (720, 340), (360, 260)  # width and height, in pixels
LETTERS = 12.5  # height of the picture's letters, in pixels
# Colours that matplotlib accepts and that nobody means, each replaced by a variable of the style sheet.
INK, MUTED, RULE = "#000101", "#000102", "#000103"
PAINT = {INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)"}
PAINT |= {f"#0002{number:02x}": f"var(--series-{number})" for number in range(1, SERIES + 1)}
DASHES = ("solid", "dashed", "dotted")
_NOT_FOR_PAGES = re.compile(  # a style that speaks for a whole page, names and letters of matplotlib's own, no turn
    r'<defs>\s*<style.*?</defs>| id="[\w.]*_\d+"|font-family: [^;"]*;? ?| transform="rotate\(-0 [^"]*"', re.DOTALL
)


@dataclass(frozen=True)
class Series:
    """A line: `y` over `x`; None and what is not finite are gaps.

    `low` and `high` bound a band around it; `points` draws each point, for lines of few.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    points: bool = False


@dataclass(frozen=True)
class Level:
    """A horizontal line with its name, in ASCII: a yardstick."""

    name: str
    value: float


def line_chart(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    levels: Sequence[Level] = (),
    log_y: bool = False,
    small: bool = False,
    describe: str = "",
) -> Html:
    """Lines over a common axis, as SVG with its legend.

    Args:
        series: The lines; those beyond the eighth are dashed, in the colours of the first.
        x_label: Below the picture, in ASCII.
        y_label: Above it, in ASCII.
        levels: Yardsticks to compare with.
        log_y: Whether equal steps upwards are equal factors; what is not above 0 is then a gap.
        small: Half a page wide; two stand side by side.
        describe: The picture in words, for those who do not see it.

    Returns:
        A piece for `figure`.

    Example:
        >>> chart = line_chart([Series("train", [1, 2], [3.0, 2.0])], x_label="step", y_label="bits")
        >>> chart.count("<svg"), "http" in chart
        (2, False)
    """
    series = [_thinned(line) for line in series]
    sizes = [("", NARROW)] if small else [(' class="wide-chart"', WIDE), (' class="narrow"', NARROW)]
    name = escaped(describe or f"{y_label} over {x_label}")
    drawn = [
        _svg(_drawn(series, levels, x_label, y_label, log_y, size), f'<svg{kind} role="img" aria-label="{name}"', size)
        for kind, size in sizes
    ]
    legend = _legend(series) if len(series) > 1 else ""
    return Html(f'<div class="chart">{legend}{"".join(drawn)}</div>')


def _drawn(
    series: Sequence[Series],
    levels: Sequence[Level],
    x_label: str,
    y_label: str,
    log_y: bool,
    size: tuple[int, int],
) -> Figure:
    width, height = size
    picture = Figure(figsize=(width / INCH, height / INCH), dpi=INCH)
    axes = picture.add_axes(_room(levels, width, height))
    pen = 1.8 if size == WIDE else 1.4  # pixels
    for number, line in enumerate(series):
        colour, dash = f"#0002{number % SERIES + 1:02x}", DASHES[number // SERIES % len(DASHES)]
        marker = "o" if line.points or sum(map(_is_number, line.y)) < 2 else ""
        y = [value if _is_number(value) and (value > 0 or not log_y) else math.nan for value in line.y]
        axes.plot(
            line.x,
            y,
            color=colour,
            linestyle=dash,
            linewidth=pen,
            marker=marker,
            markersize=3.5,
            zorder=3,
        )
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0, zorder=2)
    for level in levels:
        axes.axhline(level.value, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    if log_y:
        _make_logarithmic(axes, [value for line in series for value in line.y if _is_number(value) and value > 0])
    _dress(axes, x_label, y_label)
    if all(float(value).is_integer() for line in series for value in line.x):
        axes.locator_params(axis="x", integer=True)  # there is no step 1.25
    _name_levels(axes, levels, height)
    return picture


def _room(levels: Sequence[Level], width: int, height: int) -> tuple[float, float, float, float]:
    """Where the axes stand: left, bottom, width, height, as parts of the picture."""
    letters = max((len(_level_name(level)) for level in levels), default=0)
    right = max(
        24, 10 + letters * LETTERS * 0.5
    )  # a letter is about half as wide as high; half a figure at the axis' end
    left, bottom, top = 52, 42, 30
    return left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height


def _dress(axes: Axes, x_label: str, y_label: str) -> None:
    axes.patch.set_visible(False)
    axes.figure.patch.set_visible(False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", which="both", length=0, labelcolor=MUTED, color=MUTED, labelsize=LETTERS)
    axes.tick_params(axis="x", which="major", length=4)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, place: _figure(value))
    axes.yaxis.set_major_formatter(lambda value, place: _figure(value))
    axes.set_xlabel(x_label, color=MUTED, fontsize=LETTERS, parse_math=False)
    axes.set_title(y_label, loc="left", color=MUTED, fontsize=LETTERS, pad=10, parse_math=False)
    axes.margins(x=0.01)


def _make_logarithmic(axes: Axes, values: Sequence[float]) -> None:
    if not values:
        return
    axes.set_yscale("log")
    few = max(values) / min(values) < 100  # two powers of ten: their own ticks alone would be too few
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())


def _name_levels(axes: Axes, levels: Sequence[Level], height: int) -> None:
    """Write each level's name at the right end of its line, moved apart where two would cover each other."""
    low, high = axes.get_ylim()
    apart = LETTERS * 1.15 / (height * axes.get_position().height)
    ordered = sorted(levels, key=lambda level: level.value)
    places = [axes.transAxes.inverted().transform(axes.transData.transform((0, level.value)))[1] for level in ordered]
    for place, level in zip(_moved_apart(places, apart), ordered, strict=True):
        name = axes.text(1.015, place, _level_name(level), transform=axes.transAxes, va="center", parse_math=False)
        name.set(color=MUTED, fontsize=LETTERS)
    axes.set_ylim(low, high)


def _moved_apart(places: Sequence[float], apart: float) -> list[float]:
    """The places, in order, each at least `apart` above the one below: crowds are spread evenly about their middle."""
    crowds: list[list[float]] = []  # each: [sum of the wished-for middles, how many]
    for place in places:
        crowds.append([place, 1])
        while len(crowds) > 1 and _bottom(crowds[-1], apart) < _bottom(crowds[-2], apart) + crowds[-2][1] * apart:
            last = crowds.pop()
            crowds[-1] = [crowds[-1][0] + last[0], crowds[-1][1] + last[1]]
    return [_bottom(crowd, apart) + apart * number for crowd in crowds for number in range(int(crowd[1]))]


def _bottom(crowd: Sequence[float], apart: float) -> float:
    return crowd[0] / crowd[1] - (crowd[1] - 1) * apart / 2


def _svg(picture: Figure, opening: str, size: tuple[int, int]) -> str:
    """The drawing as an element of a page: no prologue, no address, the page's own colours and letters."""
    stream = io.StringIO()
    # The salt goes into the names of a picture's pieces, which on a page must be its own.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{opening}{size}"}):
        picture.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = _NOT_FOR_PAGES.sub("", stream.getvalue())
    text = f'{opening} viewBox="0 0 {size[0]} {size[1]}">' + text[text.index(">", text.index("<svg")) + 1 :].replace(
        "xlink:href", "href"
    )
    text = re.sub("|".join(PAINT), lambda match: PAINT[match[0]], text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _legend(series: Sequence[Series]) -> str:
    entries = (
        f'<li><span class="swatch" style="border-color: var(--series-{number % SERIES + 1});'
        f' border-top-style: {DASHES[number // SERIES % len(DASHES)]}"></span>{foreign(line.name)}</li>'
        for number, line in enumerate(series)
    )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _thinned(line: Series) -> Series:
    """The line by fewer points: of each stretch its lowest and its highest, so that no spike is lost."""
    if len(line.x) <= MOST_POINTS:
        return line
    kept = {0, len(line.x) - 1}
    for number in range(MOST_POINTS // 2):
        start, end = (part * len(line.x) // (MOST_POINTS // 2) for part in (number, number + 1))
        there = [place for place in range(start, end) if _is_number(line.y[place])] or [start]
        kept |= {min(there, key=lambda place: line.y[place] or 0.0), max(there, key=lambda place: line.y[place] or 0.0)}
    places = sorted(kept)

    band = [None if values is None else [values[place] for place in places] for values in (line.low, line.high)]
    x, y = [line.x[place] for place in places], [line.y[place] for place in places]
    return replace(line, x=x, y=y, low=band[0], high=band[1])


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _figure(value: float) -> str:
    """A number at a tick: 0.01, 2.5, 1,200, 3e+15."""
    if value != 0 and not 1e-3 <= abs(value) < 1e7:  # longer ones would run into each other
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def _level_name(level: Level) -> str:
    return f"{level.name} {level.value:.2f}"
