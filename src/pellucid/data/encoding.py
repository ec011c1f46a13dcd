"""Sources → two token files and what is counted for the card, in a folder where it can be gone on with.

Every few seconds what was written goes to the disk, and then progress.json says how far it reaches: whatever is killed
is gone on with from there. What came after is cut off and made again.

In: `Sources`, a tokenizer, a folder.  Out: `encode`, `Progress`.  Used by: prepare_folder.py.
Read next: prepare_folder.py.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from pellucid.data.card import CardCounts, TextCard
from pellucid.data.prepare import HELD_OUT_FILE, TRAIN_FILE, HeldOutLimit
from pellucid.data.prepared_folder import SAMPLE
from pellucid.data.repeated_lines import HashFile
from pellucid.data.sources import Sources
from pellucid.data.split import Passage, SplitSampler, passages
from pellucid.data.token_writer import TokenWriter, WriterState
from pellucid.text import Answer, EncodingPool, Stretch, TextTokenizer

TASK_CHARACTERS = 1 << 17  # 0.03 s of work and some 30 MB of the library's records
MOST_PASSAGES = 2048  # in a task, if they are short
SAVED_EVERY_SECONDS = 2.0
PROGRESS, LINES = "progress.json", "lines.hashes"
Batch = list[tuple[Passage, int]]
"""Passages, each with how many of its characters become ids."""


@dataclass(frozen=True)
class Progress:
    """How far the encoding has come."""

    characters: int
    """Of the text, done."""
    of: int
    resumed_at: int
    """Where this process began."""
    seconds: float
    """Since then."""

    @property
    def seconds_left(self) -> float:
        """At the rate so far."""
        return self.seconds * (self.of - self.characters) / max(1, self.characters - self.resumed_at)


@dataclass(kw_only=True)
class _Done:
    """What progress.json says: what is on the disk."""

    passages: int = 0
    characters: int = 0
    train: WriterState = field(default_factory=WriterState)
    held_out: WriterState = field(default_factory=WriterState)
    lines: int = 0
    counts: dict[str, Any] | None = None


def encode(
    sources: Sources, work: Path, tokenizer: TextTokenizer, processes: int, on_progress: Callable[[Progress], None]
) -> TextCard:
    """Write both token files and the sample, from where progress.json says.

    Args:
        sources: The text.
        work: Where.
        tokenizer: What to encode with, the same at every call.
        processes: How many encode.
        on_progress: Called after every task.

    Returns:
        The card of the text.
    """
    sampler, waiting = SplitSampler(sources), deque[Batch]()
    with _Scribe(sources, work, tokenizer) as scribe, EncodingPool(tokenizer, processes=processes) as pool:
        begun, resumed_at = time.monotonic(), scribe.done.characters
        for found in pool.encoded(_tasks(_batches(sources, sampler, scribe.done.passages), waiting)):
            scribe.write(waiting.popleft(), found)
            done = scribe.done.characters
            on_progress(Progress(done, sources.characters, resumed_at, time.monotonic() - begun))
        card = scribe.card()
    write_whole(work / SAMPLE, msgspec.json.encode(sampler.sample()))
    return card


class _Scribe:
    """Everything that grows on the disk while a text is encoded, and how far it has come there."""

    def __init__(self, sources: Sources, work: Path, tokenizer: TextTokenizer) -> None:
        self.done = _Done()
        if (work / PROGRESS).exists():
            self.done = msgspec.json.decode((work / PROGRESS).read_bytes(), type=_Done)
        self._sources, self._work, self._files = sources, work, ExitStack()
        self._counts = CardCounts(self.done.counts)
        self._lines = HashFile(work / LINES, count=self.done.lines)
        self._train, self._held_out = (
            TokenWriter(work / name, tokenizer, text=sources.fingerprint, state=state)
            for name, state in ((TRAIN_FILE, self.done.train), (HELD_OUT_FILE, self.done.held_out))
        )
        self._saved, self._between_tasks = time.monotonic(), True

    def __enter__(self) -> _Scribe:
        for file in (self._lines, self._train, self._held_out):
            self._files.enter_context(file)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            # Ctrl-C or SIGTERM, hardly ever within `write`: nothing is lost. After an error nobody knows what holds.
            if kind is not None and not issubclass(kind, Exception) and self._between_tasks:
                self._save()
        finally:
            self._files.__exit__(kind, error, at)

    def write(self, batch: Batch, found: Answer) -> None:
        """Append what became of some passages."""
        self._between_tasks = False
        for tally, training in ((found.training, True), (found.held_out, False)):
            self._counts.add(tally, training=training)
            self._lines.add(tally.hashes)
        for (passage, kept), encoded in zip(batch, found.encoded, strict=True):
            self._counts.pass_by(passage)
            self.done.characters += len(passage.text)
            if kept:
                writer = self._train if passage.side == "training" else self._held_out
                if passage.opens:
                    writer.begin_document(tenth=passage.tenth)
                writer.add(encoded.ids, characters=kept, escaped=encoded.escaped)
        self.done.passages += len(batch)
        self._between_tasks = True
        if time.monotonic() - self._saved >= SAVED_EVERY_SECONDS:
            self._save()

    def card(self) -> TextCard:
        """The card, when all was written."""
        self._train.distinct_characters = self._held_out.distinct_characters = self._counts.training_letters
        return self._counts.card(self._sources, told_lines=self._lines.count, repeated_lines=self._lines.repeated())

    def _save(self) -> None:
        done = self.done
        done.train, done.held_out, done.lines = self._train.save(), self._held_out.save(), self._lines.save()
        done.counts = self._counts.state()
        write_whole(self._work / PROGRESS, msgspec.json.encode(done))
        self._saved = time.monotonic()


def _batches(sources: Sources, sampler: SplitSampler, passages_done: int) -> Iterator[Batch]:
    """Passages in handfuls, each with how many of its characters become ids; the sampler sees all that are read."""
    limit = HeldOutLimit(sources)
    batch: Batch = []
    characters = 0
    for number, passage in enumerate(passages(sources)):
        sampler.add(passage)
        kept = limit.kept(passage)
        if number < passages_done:
            continue
        batch.append((passage, kept))
        characters += len(passage.text)
        if characters >= TASK_CHARACTERS or len(batch) >= MOST_PASSAGES:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _tasks(batches: Iterator[Batch], waiting: deque[Batch]) -> Iterator[list[Stretch]]:
    """What processes are told of each batch; the batch itself waits for what comes back."""
    for batch in batches:
        waiting.append(batch)
        yield [Stretch(passage.text, kept, passage.side == "held_out") for passage, kept in batch]


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file, all or nothing, and bring it to the disk."""
    unfinished = path.with_name(path.name + ".new")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
