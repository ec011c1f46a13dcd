"""How the run learned: its curves beside the yardsticks, what it noticed, and the same prompt at every evaluation.

In: a `Record`.  Out: HTML.  Used by: writing.py.  Read next: copying.py.
"""

import math

from pellucid.pages import Html, counted, figure, foreign, joined, paragraph
from pellucid.pages.curves import Level, Series, line_chart
from pellucid.report.record import Record, number, text
from pellucid.report.spaced import spaced

MOST_SAMPLES = 24  # as many as one reads; of more, evenly spaced ones
MOST_NOTICED = 20
RATE_NAMES = {
    "matrices": "matrices (Muon)",
    "fused": "attention's matrices",
    "embedding": "embeddings",
    "head": "head",
    "vectors": "norms and biases",
}


def curves(record: Record) -> Html:
    """Loss over steps with the yardsticks; learning rate and gradient norm below."""
    steps, scores = record.steps, record.all("Evaluated")
    if not len(steps):
        return paragraph("No step was done.")
    lines = [Series("the text it reads, a mean over about twenty steps", steps["step"], steps["train"])]
    held_out = [(number(event.get("step")), number(event.get("held_out"))) for event in scores]
    if any(math.isfinite(score) for _, score in held_out):
        x, y = zip(*held_out, strict=True)
        lines.append(Series("text it never reads", x, y, points=True))
    chart = line_chart(
        lines,
        x_label="step",
        y_label="bits per character: lower is better",
        levels=yardstick_levels(record),
        describe="Loss over steps, beside yardsticks",
    )
    small = Html(f'<div class="pair">{figure(_rates(record))}{figure(_gradient_norm(record))}</div>')
    return joined([figure(chart, _explained(record)), small])


def yardstick_levels(record: Record) -> list[Level]:
    """What simple predictors reach, as lines."""
    measured = record.fact("yardsticks") or record.last("YardsticksMeasured")
    if not isinstance(measured, dict):
        return []
    names = {
        "chance": "chance",
        "letters": "letter counts",
        "best_ngram": text(measured.get("best_ngram_name")) or "letter table",
        "xz": "xz",
    }
    if names["best_ngram"] == "letters":
        del names["best_ngram"]
    values = {name: number(measured.get(key)) for key, name in names.items()}
    return [Level(name if name.isascii() else "letter table", value) for name, value in values.items() if value > 0]


def noticed(record: Record) -> Html:
    """The warnings that were told as the run went on."""
    sentences = [
        joined([f"Step {int(number(event.get('step'), 0)):,}: ", foreign(text(event.get("sentence")))])
        for event in record.all("Noticed")
        if text(event.get("sentence"))
    ]
    if record.steps.skipped and all(event.get("kind") != "skipped step" for event in record.all("Noticed")):
        first = ", ".join(f"{step:,}" for step, _ in record.steps.skipped[:5])
        why = next((why for _, why in record.steps.skipped if why), "")
        more = ", …" if len(record.steps.skipped) > 5 else ""
        sentences.append(
            joined(
                [
                    f"{counted(len(record.steps.skipped), 'step')} skipped, whose loss or gradient was not finite"
                    f" (step {first}{more})",
                    f"; first not finite: {why}." if why else ".",
                ]
            )
        )
    if not sentences:
        return Html("")
    more = len(sentences) - MOST_NOTICED
    told = [Html(f"<li>{sentence}</li>") for sentence in sentences[:MOST_NOTICED]]
    rest = paragraph(f"And {more:,} more, in metrics.jsonl.", kind="note") if more > 0 else ""
    return joined([Html(f'<ul class="warn">{"".join(told)}</ul>'), rest])


def samples(record: Record) -> Html:
    """What the same prompt became, evaluation by evaluation."""
    written = [event for event in record.all("Sampled") if text(event.get("text")).strip()]
    if not written:
        return Html("")
    shown = spaced(written, MOST_SAMPLES)
    scores = {event.get("step"): number(event.get("held_out")) for event in record.all("Evaluated")}
    entries = []
    for event in shown:
        score = scores.get(event.get("step"), math.nan)
        bits = f" · {score:.2f} bits" if math.isfinite(score) else ""
        step = f"Step {int(number(event.get('step'), 0)):,}{bits}"
        entries.append(Html(f'<div class="then"><p class="note">{step}</p>{foreign(event["text"], block=True)}</div>'))
    prompt = text(written[-1].get("prompt"))
    start = joined(["Each continues ", foreign(prompt), ", "]) if prompt else "Each begins a document, "
    fewer = f" {len(shown)} of {len(written):,} evaluations are shown." if len(shown) < len(written) else ""
    together = Html(f'<div class="pair">{"".join(entries)}</div>')
    return joined([paragraph(start, f"with the same seed.{fewer}", kind="note"), together])


def _explained(record: Record) -> str:
    parts = ["Chance knows the alphabet alone; letter counts know how frequent each letter is; an n-gram table knows"]
    parts.append("which letter follows the few before it; xz is what the compressor makes of the same passages.")
    if not yardstick_levels(record):
        parts = ["Nothing was held out, so there is nothing to compare with."]
    best = number(record.last("Finished").get("best_step"))
    if math.isfinite(best) and best < record.last_step:
        parts.append(f"model.safetensors holds step {best:,.0f}, the best one.")
    return " ".join(parts)


def _rates(record: Record) -> Html:
    lines = [
        Series(
            RATE_NAMES.get(name, name), record.steps["step"], [*rates, *[math.nan] * (len(record.steps) - len(rates))]
        )
        for name, rates in record.steps.rates.items()
    ]
    distinct: list[Series] = []  # lines that lie on each other are one line
    for line in lines:
        if all(list(line.y) != list(other.y) for other in distinct):
            distinct.append(line)
    return line_chart(distinct, x_label="step", y_label="learning rate", log_y=True, small=True)


def _gradient_norm(record: Record) -> Html:
    limit = number(record.fact("config", "optimizer", "max_gradient_norm"))
    norms = record.steps["gradient_norm"]
    reached = max((norm for norm in norms if math.isfinite(norm)), default=0.0)
    levels = [Level("clipped at", limit)] if 0 < limit <= reached else []
    line = Series("gradient norm", record.steps["step"], norms)
    return line_chart([line], x_label="step", y_label="gradient norm", levels=levels, log_y=True, small=True)
