"""Module health: how large weights, gradients, updates and outputs were, and how widely attention looked.

In: a `Record`.  Out: HTML.  Used by: writing.py.  Read next: identity.py.
"""

import math
import re
from collections.abc import Mapping
from statistics import fmean

from pellucid.pages import Html, figure, foreign, joined, paragraph, table
from pellucid.pages.curves import Series, line_chart
from pellucid.report.record import Record, number, text
from pellucid.report.spaced import spaced

MOST_LINES = 8  # as many as have colours
COLUMNS = {"weight": "weights", "gradient": "gradient", "update_ratio": "update / weights", "activation": "output"}
KINDS = ("query_key_value", "attention.output", "gate", "up", "down", "token_embedding", "lm_head")


def health(record: Record) -> Html:
    """Three pictures over the run, the modules that left the others, and every module at the last look."""
    looks = [event for event in record.all("ModuleHealth") if isinstance(event.get("modules"), Mapping)]
    if not looks:
        return Html("")
    left = [text(event.get("sentence")) for event in record.all("Noticed") if event.get("kind") == "module"]
    named = joined(paragraph(foreign(sentence), kind="warn") for sentence in left if sentence)
    if not named:
        named = paragraph("No module's numbers left those of its kind.")
    charts = [chart for chart in (_streams(looks), _entropies(looks), _updates(looks)) if chart]
    pictures = Html(f'<div class="pair">{joined(figure(chart) for chart in charts)}</div>')
    return joined([named, pictures, _last_look(looks[-1])])


def _streams(looks: list[dict]) -> Html:
    blocks = _numbered(looks[-1], r"blocks\.(\d+)")
    lines = [
        _line(f"after block {place + 1}", looks, lambda look, address=address: _at(look, address, "activation"))
        for place, address in spaced(blocks, MOST_LINES)
    ]
    return _chart(lines, "residual stream, root mean square")


def _entropies(looks: list[dict]) -> Html:
    def share(look: dict, address: str) -> float:
        ceiling = _at(look, address, "entropy_ceiling")
        return _at(look, address, "entropy") / ceiling if ceiling > 0 else math.nan

    lines = [
        _line(f"layer {place + 1}", looks, lambda look, address=address: share(look, address))
        for place, address in spaced(_numbered(looks[-1], r"blocks\.(\d+)\.attention"), MOST_LINES)
    ]
    return _chart(lines, "entropy of attention, of the most possible", log_y=False)


def _updates(looks: list[dict]) -> Html:
    def ratio(look: dict, kind: str) -> float:
        of_kind = (_at(look, address, "update_ratio") for address in look["modules"] if address.endswith(kind))
        known = [value for value in of_kind if math.isfinite(value)]
        return fmean(known) if known else math.nan

    lines = [_line(kind.replace("_", " "), looks, lambda look, kind=kind: ratio(look, kind)) for kind in KINDS]
    return _chart(lines, "update / weights, of a step")


def _last_look(look: dict) -> Html:
    rows = [
        [foreign(address), *(_figure(number(found.get(name))) for name in COLUMNS), _entropy(found)]
        for address, found in look["modules"].items()
        if isinstance(found, Mapping)
    ]
    inside = table(["module", *COLUMNS.values(), "entropy"], rows)
    step = f"{number(look.get('step')):,.0f}"
    return Html(f"<details><summary>Every module after step {step}, root mean squares</summary>{inside}</details>")


def _chart(lines: list[Series], label: str, *, log_y: bool = True) -> Html:
    lines = [line for line in lines if any(math.isfinite(value or math.nan) for value in line.y)]
    return line_chart(lines, x_label="step", y_label=label, log_y=log_y, small=True) if lines else Html("")


def _line(name: str, looks: list[dict], value) -> Series:
    return Series(name, [number(look.get("step")) for look in looks], [value(look) for look in looks])


def _at(look: dict, address: str, quantity: str) -> float:
    found = look["modules"].get(address)
    return number(found.get(quantity) if isinstance(found, Mapping) else None)


def _numbered(look: dict, pattern: str) -> list[tuple[int, str]]:
    found = ((re.fullmatch(pattern, address), address) for address in look["modules"])
    return sorted((int(match[1]), address) for match, address in found if match)


def _entropy(found: Mapping) -> str:
    entropy, ceiling = number(found.get("entropy")), number(found.get("entropy_ceiling"))
    return f"{entropy:.2f} of {ceiling:.2f} nats" if math.isfinite(entropy) and math.isfinite(ceiling) else ""


def _figure(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else ""
