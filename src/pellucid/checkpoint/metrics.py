"""metrics.jsonl: one JSON object a line, everything the screen showed.

In: events as dictionaries.  Out: lines, and back.  Used by: run_folder, report, compare.  Read next: run_folder.py.
"""

import json
import math
import os
from pathlib import Path
from typing import Any


def append_line(path: Path, event: dict[str, Any]) -> None:
    """Add one event, flushed: a reader sees it at once. Infinities and NaN, which JSON lacks, become null.

    A line that a kill cut short is removed first.
    """
    line = json.dumps(_finite(event), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    with path.open("ab+") as file:
        _drop_half_line(file)
        file.write(line)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All events so far; a last line that a kill cut short, and what is no event, is left out. No file: no events.

    What somebody else wrote into the file keeps no run from going on.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    lines = map(_event, content[: content.rfind(b"\n") + 1].split(b"\n"))
    return [line for line in lines if line is not None]


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def cut_to(path: Path, num_bytes: int) -> None:
    """Forget the events after a checkpoint, which the run that goes on from it will write again."""
    if path.exists() and path.stat().st_size > num_bytes:
        os.truncate(path, num_bytes)


def _drop_half_line(file) -> None:
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        file.seek(end - 1)
        if file.read(1) == b"\n":
            break
        end -= 1
    file.truncate(end)
    file.seek(0, os.SEEK_END)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(part) for key, part in value.items()}
        case list() | tuple():
            return [_finite(part) for part in value]
        case float() if not math.isfinite(value):
            return None
    return value
