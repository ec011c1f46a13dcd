"""The data card: what the text is, what was held out of it, and how it was cut into tokens.

In: a `Record`, and a card.json if the text was prepared.  Out: HTML.  Used by: writing.py.  Read next: course.py.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.pages import Html, counted, facts, foreign, joined, paragraph
from pellucid.report.record import Record, number, text

MOST_LETTERS = 3000  # of an alphabet, folded away: a page of Chinese
KINDS = {"characters": "single characters", "bpe": "byte pairs"}


def text_card(record: Record, cards: Sequence[str] = ()) -> Html:
    """Name, size, split, tokens, and what was said of it; and the sentences of its card if it was prepared."""
    rows = [row for row in (*_source(record), *_held_out(record), *_tokens(record)) if row[1]]
    if not rows:
        return paragraph("The run had not read its text yet.")
    notes = record.last("TextRead").get("notes")
    told = [note for note in notes if text(note)] if isinstance(notes, list | tuple) else []
    told += cards
    listed = Html("<ul>" + "".join(f"<li>{foreign(note)}</li>" for note in told) + "</ul>") if told else ""
    return joined([facts(rows), listed, _alphabet(record)])


def _source(record: Record) -> list[tuple[str, str]]:
    told = record.last("TextRead")

    def known(name: str, event_name: str = "") -> Any:
        value = record.fact("data", name)
        return told.get(event_name or name) if value is None else value

    characters, num_bytes = number(known("characters")), number(known("utf8_bytes"))
    size = f"{characters:,.0f} characters" if math.isfinite(characters) else ""
    if size and math.isfinite(num_bytes):
        size += f", {_bytes(num_bytes)} as UTF-8"
    documents = number(known("documents"))
    distinct = number(told.get("distinct_characters"), len(text(record.fact("data", "alphabet"))) or math.nan)
    return [
        ("text", foreign(name) if (name := text(known("name"))) else ""),
        ("size", size),
        ("documents", f"{documents:,.0f}" if math.isfinite(documents) else ""),
        ("different characters", f"{distinct:,.0f}" if math.isfinite(distinct) else ""),
    ]


def _held_out(record: Record) -> list[tuple[str, str]]:
    split = record.fact("data", "held_out")
    if not isinstance(split, Mapping):
        return []
    percent, characters = number(split.get("percent")), number(split.get("held_out_characters"))
    if not percent:
        return [("held out", "nothing: everything was for training")]
    kind = "whole documents" if split.get("kind") == "documents" else "passages, the end of each tenth of the text"
    told = f"{percent:g} %" + (f", {characters:,.0f} characters: {kind}" if math.isfinite(characters) else "")
    measured = record.fact("yardsticks") or record.last("YardsticksMeasured")
    unseen = number(measured.get("unseen") if isinstance(measured, Mapping) else None, 0)
    if unseen:
        told += f"; {counted(int(unseen), 'character')} of it never met in training"
    return [("held out", told)]


def _tokens(record: Record) -> list[tuple[str, str]]:
    told = record.last("TextTokenized")
    kind = text(told.get("kind")) or text(record.fact("tokenizer", "kind"))
    vocab_size = number(told.get("vocab_size"), number(record.fact("tokenizer", "vocab_size")))
    if not math.isfinite(vocab_size):
        return []
    each = number(told.get("characters_per_token"))
    reason = f", since {reason}" if (reason := text(told.get("reason"))) else ""
    length = f", {each:.2f} characters each" if math.isfinite(each) else ""
    rows: list[tuple[str, str]] = [
        ("tokens", joined([f"{vocab_size:,.0f} {KINDS.get(kind, 'kinds')}{length}", foreign(reason)]))
    ]
    training, held_out = number(told.get("training_tokens")), number(told.get("held_out_tokens"), 0)
    if math.isfinite(training):
        rows.append(("to learn from", f"{training:,.0f} tokens, and {held_out:,.0f} to be tested on"))
    share = number(told.get("text_share"), 1)
    if share < 1:
        rows.append(("made ready", f"{share:.0%} of the text, taken evenly from all of it: what the run could read"))
    return rows


def _alphabet(record: Record) -> Html:
    letters = "".join(sorted(text(record.fact("data", "alphabet")).replace("\n", "").replace("\t", "")))
    if not letters.strip():
        return Html("")
    shown, more = letters[:MOST_LETTERS], len(letters) - MOST_LETTERS
    rest = f" … and {more:,} more" if more > 0 else ""
    return Html(
        f"<details><summary>Its characters</summary>{foreign(shown + rest, block=True, kind='letters')}</details>"
    )


def _bytes(count: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:,.0f} bytes"
