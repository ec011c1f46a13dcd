"""A run folder of invented figures: events without a model, for what a page makes of them.

In: events.  Out: `invented`.  Used by: the tests of report and cli.  Read next: test_writing.py.
"""

import json
from pathlib import Path
from typing import Any

from pellucid.checkpoint import RunFolder
from pellucid.report.record import Record, read_record
from tests.cli.finished_run import GOOD

TEXT = '<script>alert("no")</script> سلام دنیا 中文 \u202e\x1b[31m </div>'

FACTS = {
    "name": "book-01",
    "command": ["pellucid", "train", "a book.txt", "--minutes", "5"],
    "seed": 0,
    "data": {
        "name": "a book.txt",
        "fingerprint": "f" * 64,
        "characters": 1000,
        "utf8_bytes": 1500,
        "documents": 2,
        "alphabet": "abc\n<&نص",
        "held_out": {"kind": "passages", "percent": 5, "held_out_characters": 50},
    },
    "config": {"optimizer": {"max_gradient_norm": 1.0}, "training": {"prompt": ""}},
    "yardsticks": {
        "chance": 6.0,
        "letters": 4.8,
        "best_ngram": 2.0,
        "best_ngram_name": "5-gram",
        "xz": 2.5,
        "unseen": 1,
        "bytes_per_character": 1.5,
        "held_out_characters": [50, 50],
    },
    "plan": {
        "parameters": 2_164_672,
        "steps": 100,
        "batch_size": 16,
        "micro_batch_size": 4,
        "tokens_per_step": 4096,
        "step_seconds": 0.25,
        "epochs": 20.0,
        "variant": "bfloat16, tiled attention, compiled",
        "threads": 2,
        "device": "cpu",
        "minutes": 5.0,
        "memory_bytes": 300_000_000,
    },
    "environment": {"pellucid": "0.1.0", "torch": "2.13.0", "deterministic_algorithms": True, "device_name": ""},
}


def step(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "event": "StepDone",
        "step": number,
        "bits_per_character": 6.0 - number / 50,
        "train": 6.0 - number / 60,
        "gradient_norm": 1.0 + number % 3,
        "learning_rates": {"matrices": 0.04, "head": 0.003, "vectors": 0.003},
        "epoch": number / 10,
        "tokens_per_second": 10_000.0,
    } | changes


def evaluated(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "event": "Evaluated",
        "step": number,
        "train": 3.0,
        "held_out": 4.0 - number / 50,
        "standard_error": 0.05,
        "seconds": 2.0,
    } | changes


def sampled(number: int, text: str = "the cat", prompt: str = "") -> dict[str, Any]:
    return {"event": "Sampled", "step": number, "prompt": prompt, "text": text}


def finished(**changes: Any) -> dict[str, Any]:
    own = {"yardsticks": FACTS["yardsticks"], "sample": "a dog and the cat sat", "tokens_per_second": 12_000.0}
    return {"event": "Finished", **GOOD, **own, **changes}


def invented(path: Path, *events: dict[str, Any], facts: dict[str, Any] | None = None) -> RunFolder:
    """A run folder with these events."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "run.json").write_text(json.dumps(FACTS if facts is None else facts), encoding="utf-8")
    lines = "".join(json.dumps(event, ensure_ascii=True) + "\n" for event in events)
    (path / "metrics.jsonl").write_text(lines, encoding="utf-8")
    return RunFolder.open(path)


def invented_record(path: Path, *events: dict[str, Any], facts: dict[str, Any] | None = None) -> Record:
    """The same, read."""
    return read_record(invented(path, *events, facts=facts))
