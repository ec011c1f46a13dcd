"""Exactly this run: command, hashes, versions; and what showing the page tells of the text.

In: a `Record`.  Out: HTML.  Used by: writing.py.  Read next: writing.py.
"""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from pellucid.checkpoint.durable import sha256_of
from pellucid.pages import Html, facts, foreign, joined, paragraph
from pellucid.report.record import Record, text

FILES = ("model.safetensors", "config.json", "tokenizer.json", "run.json")


def exactly(record: Record) -> Html:
    """How to make it again, and how to know that it is the same."""
    command = record.fact("command")
    words = [text(word) for word in command] if isinstance(command, list | tuple) else []
    parts = [Html(f'<pre dir="ltr">{foreign(shlex.join(words))}</pre>')] if words else []
    fingerprints = [
        ("text", text(record.fact("data", "fingerprint"))),
        ("tokenizer", text(record.fact("tokenizer", "fingerprint"))),
    ]
    fingerprints += [(name, _hash(record.path / name)) for name in FILES]
    rows = [(name, Html(f'<span class="code">{foreign(value)}</span>')) for name, value in fingerprints if value]
    parts += [Html("<h3>SHA-256</h3>"), facts(rows)]
    environment = record.fact("environment")
    if isinstance(environment, Mapping):
        known = [
            (str(name).replace("_", " "), foreign(_told(value))) for name, value in environment.items() if value != ""
        ]
        parts += [Html("<h3>Computed with</h3>"), facts(known)]
    parts.append(_settings(record))
    return joined(parts)


def reveals(record: Record) -> Html:
    """What whoever sees this page learns of the text."""
    held_out = bool(record.last("Finished").get("held_out") is not None or record.last("Evaluated").get("held_out"))
    sentence = "a sentence of its held-out passages" if held_out else "a sentence of a sample"
    return paragraph(
        "This page holds no weights and not the text itself; yet whoever sees it sees the names of its files as they"
        " stand in the command, its alphabet, its SHA-256, what the model wrote, the passages that it shares with the"
        f" text, and {sentence}. If the text is private, so is this page."
    )


def _settings(record: Record) -> Html:
    settings = {
        name: record.fact(name) for name in ("seed", "config", "model", "plan") if record.fact(name) is not None
    }
    if not settings:
        return Html("")
    lines = json.dumps(settings, indent=1, ensure_ascii=False, default=str)
    return Html(f'<details><summary>Every setting</summary><pre dir="ltr">{foreign(lines)}</pre></details>')


def _hash(path: Path) -> str:
    return sha256_of(path) if path.is_file() else ""


def _told(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
