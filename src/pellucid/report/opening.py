"""The first screen: how good the model is, and what it writes.

In: a `Record`.  Out: HTML.  Used by: writing.py.  Read next: learning.py.
"""

import dataclasses
import math
from typing import Any

from pellucid.pages import Html, counted, duration, escaped, foreign, joined, paragraph
from pellucid.report.record import Record, number, text
from pellucid.train import Finished
from pellucid.train.verdict import advice, letters, verdict

MOST_SHOWN, MOST_LINES = 700, 14  # characters and lines of the closing sample before the rest is folded away


YARDSTICKS = {"unseen": 0, "bytes_per_character": 1.0, "xz": 0.0}
"""What earlier versions did not measure, so that nothing is said of it."""


def finished(record: Record) -> Finished | None:
    """The last event of a run that came to its end, or was stopped; None if it was killed."""
    told = record.last("Finished")
    known = {field.name for field in dataclasses.fields(Finished)}
    fields = {name: value for name, value in told.items() if name in known}
    if isinstance(yardsticks := fields.get("yardsticks"), dict) and yardsticks:
        fields["yardsticks"] = YARDSTICKS | yardsticks
    try:
        return Finished(**fields) if told else None
    except TypeError:  # written by a version that knew less
        return None


def lead(record: Record) -> Html:
    """What the run was, how good it is, its four figures, and the first thing to know if it ended early."""
    event = finished(record)
    words = _verdict(event) if event else [_without_an_end(record)]
    parts = [paragraph(_subject(record), kind="note"), paragraph(words[0], kind="lead"), _figures(record)]
    parts += [paragraph(sentence, kind="note") for sentence in words[1:]]
    if event and not event.completed:
        parts.append(paragraph(f"The run was stopped after step {event.step:,} of {event.steps:,}; it can go on."))
    parts += [paragraph(sentence) for sentence in ([advice(event)] if event and advice(event) else [])]
    return joined(parts)


def closing_sample(record: Record) -> Html:
    """What the model wrote at the end, or last."""
    told = record.last("Finished")
    latest = record.last("Sampled")
    sample = text(told.get("sample")) or text(latest.get("text"))
    if not sample.strip():
        return Html("")
    prompt = text(record.fact("config", "training", "prompt"))
    first, rest = _cut(sample)
    passage = foreign(first, block=True, kind="sample")
    if rest:
        passage = joined([passage, Html(f"<details><summary>The rest</summary>{foreign(rest, block=True)}</details>")])
    how = f"{counted(len(sample), 'character')}, written by the model after step {_step_of_sample(record):,}"
    asked = joined(["; the prompt was ", foreign(prompt)]) if prompt else ", with no prompt"
    return joined([passage, paragraph(how, asked, ", at temperature 0.8.", kind="note")])


def _verdict(event: Finished) -> list[str]:
    try:
        return verdict(event)
    except (KeyError, TypeError, ValueError, AssertionError):  # a figure is missing that another version did not write
        return ["How good it is, this version of pellucid cannot read from this run."]


def _without_an_end(record: Record) -> str:
    """A run that was killed, or that is not over: the best that is known."""
    if not record.last_step:
        return "The run has no step yet: there is nothing to judge."
    scores = [event for event in record.all("Evaluated") if math.isfinite(number(event.get("held_out")))]
    of = f"step {record.last_step:,} of {int(number(_planned(record).get('steps'), 0)):,}"
    if not scores:
        return f"After {of}, and before its first evaluation: how good it is, nobody can tell yet."
    best = min(scores, key=lambda event: number(event["held_out"]))
    return (
        f"After {of}, not at its end: at its best, on passages it never read, it hesitated between"
        f" {letters(number(best['held_out']))} letters a time (step {int(number(best.get('step'), 0)):,})."
    )


def _subject(record: Record) -> Html:
    """What was learned from what."""
    name = text(record.fact("data", "name")) or text(record.last("TextRead").get("name"))
    parameters = number(_planned(record).get("parameters"))
    model = f"A language model of {_large(parameters)} parameters" if math.isfinite(parameters) else "A language model"
    return joined([f"{model}, trained on ", foreign(name)]) if name else escaped(f"{model}.")


def _figures(record: Record) -> Html:
    """Four figures in large type."""
    told, planned = record.last("Finished"), _planned(record)
    score = told or min(record.all("Evaluated"), key=lambda event: number(event.get("held_out"), math.inf), default={})
    held_out, error = number(score.get("held_out")), number(score.get("standard_error"))
    yardsticks: Any = record.fact("yardsticks") or record.last("YardsticksMeasured")
    table = number(yardsticks.get("best_ngram") if isinstance(yardsticks, dict) else None)
    train = number(told.get("train"), number(record.last("Evaluated").get("train")))
    seconds = number(told.get("seconds"))
    shown: list[tuple[str, str]] = []
    if math.isfinite(held_out):
        spread = f"<small> ± {error:.3f}</small>" if math.isfinite(error) else ""
        shown.append((Html(f"{held_out:.3f}{spread}"), "bits per character on text it never read"))
    elif math.isfinite(train):
        shown.append((f"{train:.3f}", "bits per character on the text it read; none was held out"))
    if math.isfinite(table):
        name = text(yardsticks.get("best_ngram_name"))
        shown.append((f"{table:.3f}", f"the best letter table ({name}) on the same text"))
    if record.last_step:
        readings = number(told.get("epochs"), max(record.steps["epoch"], default=math.nan))
        read = f", the text read {_times(readings)}" if math.isfinite(readings) else ""
        shown.append((f"{record.last_step:,}", f"steps{read}"))
    if math.isfinite(seconds):
        shown.append((duration(seconds), f"on {_machine(record, planned)}"))
    cells = (f"<div><b>{escaped(figure)}</b><span>{escaped(words)}</span></div>" for figure, words in shown)
    return Html(f'<div class="figures">{"".join(cells)}</div>')


def _planned(record: Record) -> dict[str, Any]:
    plan = record.fact("plan")
    return plan if isinstance(plan, dict) else record.last("Planned")


def _machine(record: Record, planned: dict[str, Any]) -> str:
    if text(planned.get("device")) != "cpu":
        return text(record.fact("environment", "device_name")) or text(planned.get("device")) or "an unknown device"
    return counted(int(number(planned.get("threads"), 1)), "CPU thread")


def _step_of_sample(record: Record) -> int:
    told = record.last("Finished")
    step = told.get("best_step") if text(told.get("sample")) else record.last("Sampled").get("step")
    return int(number(step, 0))


def _cut(sample: str) -> tuple[str, str]:
    """The sample as far as it is shown at once, cut at white space."""
    lines = sample.split("\n")
    at = len("\n".join(lines[:MOST_LINES]))
    if at > MOST_SHOWN:
        space = max(sample.rfind(" ", 0, MOST_SHOWN), sample.rfind("\n", 0, MOST_SHOWN))
        at = space if space > MOST_SHOWN // 2 else MOST_SHOWN  # Chinese has no spaces
    enough = (
        len(sample) - at < MOST_SHOWN // 4 and len(lines) < MOST_LINES * 1.3
    )  # a few words more are not folded away
    return (sample, "") if enough else (sample[:at], sample[at:].strip("\n"))


def _large(value: float) -> str:
    """Example: 2.2 million."""
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{value / size:.1f} {word}"
    return f"{value:,.0f}"


def _times(readings: float) -> str:
    return f"{readings:.1f} times" if readings < 10 else f"{readings:.0f} times"
