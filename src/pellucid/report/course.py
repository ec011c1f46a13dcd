"""Plan and what happened: steps, seconds, memory, and everything that changed on the way.

In: a `Record`.  Out: HTML.  Used by: writing.py.  Read next: attention.py.
"""

import math
from collections.abc import Mapping

from pellucid.pages import Html, counted, duration, escaped, figure, foreign, joined, paragraph, table
from pellucid.pages.curves import Series, line_chart
from pellucid.report.record import Record, number, text

MOST_VARIANTS = 12


def course(record: Record) -> Html:
    """Planned beside real, then the way from one to the other."""
    planned = record.fact("plan")
    planned = planned if isinstance(planned, Mapping) else record.last("Planned")
    if not planned:
        return paragraph("The run ended before its plan was made.")
    rows = [row for row in _rows(record, planned) if row[1] or row[2]]
    happenings = [Html(f"<li>{escaped(entry)}</li>") for entry in _happenings(record)]
    way = Html(f"<ul>{''.join(happenings)}</ul>") if happenings else ""
    return joined([table(["", "planned", "happened"], rows), _how(planned), way, _speed(record)])


def _rows(record: Record, planned: Mapping) -> list[tuple[str, str, str]]:
    done, pace = record.last("Finished"), _step_seconds(record, planned)
    minutes = number(planned.get("minutes"))
    readings = number(done.get("epochs"), max(record.steps["epoch"], default=math.nan))
    rate = number(done.get("tokens_per_second"), _median(record.steps["tokens_per_second"]))
    planned_pace = number(planned.get("step_seconds"))
    per_step = number(planned.get("tokens_per_step"))
    memory, needed = number(planned.get("memory_bytes"), 0), number(done.get("peak_memory_bytes"), 0)
    return [
        ("steps", _whole(number(planned.get("steps"))), _whole(record.last_step)),
        ("seconds a step", _seconds(planned_pace), _seconds(pace)),
        ("tokens a second", _whole(per_step / planned_pace if planned_pace > 0 else math.nan), _whole(rate)),
        ("readings of the text", _figure(number(planned.get("epochs"))), _figure(readings)),
        (
            "time in all",
            duration(minutes * 60) if math.isfinite(minutes) else "",
            duration(number(done.get("seconds"))) if "seconds" in done else "",
        ),
        ("memory", f"{memory / 1e6:,.0f} MB" if memory else "", f"{needed / 1e6:,.0f} MB" if needed else ""),
    ]


def _how(planned: Mapping) -> Html:
    """A step's work, and how it was computed."""
    batch, micro = int(number(planned.get("batch_size"), 0)), int(number(planned.get("micro_batch_size"), 0))
    parts = f", {micro:,} at a time" if 0 < micro < batch else ""
    tokens = int(number(planned.get("tokens_per_step"), 0))
    device = text(planned.get("device"))
    where = counted(int(number(planned.get("threads"), 1)), "thread") if device == "cpu" else device
    return paragraph(
        f"A step is {counted(tokens, 'token')} in {counted(batch, 'row')}{parts}; ",
        foreign(f"{text(planned.get('variant'))}, on {where}."),
    )


def _happenings(record: Record) -> list[Html | str]:
    told: list[Html | str] = []
    for event in record.all("VariantTried")[:MOST_VARIANTS]:
        name, reason = text(event.get("variant")), text(event.get("reason"))
        pace, wait = number(event.get("step_seconds")), number(event.get("compile_seconds"), 0)
        compiled = f", after {wait:.0f} s of compiling" if wait >= 1 else ""
        timed = f": {_seconds(pace)} s a step{compiled}" if math.isfinite(pace) else ""
        refused = "" if event.get("admitted") else f", not used: {reason}"
        told.append(joined(["Tried ", foreign(name + timed + refused), "."]))
    for event in record.all("Replanned"):
        told.append(
            f"Planned again at step {_whole(number(event.get('step')))}: {_whole(number(event.get('new_steps')))} steps"
            f" instead of {_whole(number(event.get('old_steps')))}, since one took"
            f" {_seconds(number(event.get('step_seconds')))} s and not"
            f" {_seconds(number(event.get('planned_step_seconds')))} s."
        )
    for event in record.all("Resumed"):
        note = f"; {note}" if (note := text(event.get("note"))) else ""
        told.append(joined([f"Gone on from step {_whole(number(event.get('step')))}", foreign(note), "."]))
    for event in record.all("CoolingDown"):
        told.append(
            f"Asked to stop at step {_whole(number(event.get('step')))}: the learning rate fell to its end by step"
            f" {_whole(number(event.get('steps')))}."
        )
    if record.steps.skipped:
        told.append(f"{counted(len(record.steps.skipped), 'step')} skipped: a loss or gradient was not finite.")
    told += _pauses(record)
    if record.unread:
        told.append(f"{counted(record.unread, 'line')} of metrics.jsonl could not be read; the rest is shown.")
    return told


def _pauses(record: Record) -> list[str]:
    """What stands between the steps."""
    scored = [number(event.get("seconds"), 0) for event in record.all("Evaluated")]
    if not scored:
        return []
    saved = counted(len(record.all("Saved")), "checkpoint")
    return [f"{counted(len(scored), 'evaluation')} took {duration(sum(scored))} in all; {saved} saved."]


def _speed(record: Record) -> Html:
    rates = record.steps["tokens_per_second"]
    if len(rates) < 2:
        return Html("")
    line = Series("tokens a second", record.steps["step"], rates)
    chart = line_chart([line], x_label="step", y_label="tokens a second, so far", small=True)
    return Html(f'<div class="pair">{figure(chart)}</div>')


def _step_seconds(record: Record, planned: Mapping) -> float:
    """What a step took, everything between steps included."""
    rate = number(record.last("Finished").get("tokens_per_second"), _median(record.steps["tokens_per_second"]))
    return number(planned.get("tokens_per_step")) / rate if rate > 0 else math.nan


def _median(values) -> float:
    finite = sorted(value for value in values if math.isfinite(value))
    return finite[len(finite) // 2] if finite else math.nan


def _whole(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else ""


def _seconds(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else ""


def _figure(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else ""
