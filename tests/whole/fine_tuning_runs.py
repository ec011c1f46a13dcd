"""Runs that go on from a small model, on text or on chats.

In: folders.  Out: `make_source`, `request`.  Used by: test_fine_tuning.py, many_processes.py.
Read next: test_fine_tuning.py.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pellucid.checkpoint import write_model
from pellucid.data import open_chats
from pellucid.text import character_tokenizer
from pellucid.train import Request, Start
from tests.data.chat_files import LETTERS, animal_chats, chat_file
from tests.train.small_run import small_model, small_request

CHATS = {"sources": "chats", "micro_batch_size": 1}
ENDS = {"steps": 7, "evaluations": 3, "batch_size": 3}


def make_source(folder: Path) -> Path:
    """A model that knows letters and no chats, its vocabulary padded by one row."""
    folder.mkdir(exist_ok=True)
    tokenizer = character_tokenizer([LETTERS])
    tokenizer.save(folder)
    model = small_model(vocab_size=tokenizer.vocab_size + 1, num_unused_ids=1, context_length=128)
    write_model(folder, model.state_dict(), model.config)
    return folder


def request(out: Path, source: Path, **changes: Any) -> Request:
    """Fields as for `small_request`; sources="chats" are conversations about animals."""
    settings = ENDS | {"tokenizer": None} | changes
    model, start = settings.pop("model", {}), Start.open(source)
    if settings.get("sources") == "chats":
        start = start.for_chats()
        settings["sources"] = open_chats([chat_file(out.parent / "chats.jsonl", animal_chats())])
        model = {"context_length": 64} | model
    return replace(small_request(out, start=start, **settings), model=model)
