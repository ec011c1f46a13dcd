"""Sources → a prepared folder: encoded and counted on several processes, within bounded memory, able to go on.

    sources ─passages─▶ tasks ─▶ [processes: ids, counts] ─in order─▶ token files, card      (DIR.unfinished)
                                                                             └─ all on the disk: renamed to DIR

Everything is made in `DIR.unfinished`. Every few seconds what was written goes to the disk and progress.json says how
far it reaches. After a kill the same command reads the text again, checks that it is the same, leaves out what is done,
and goes on from there; the result is the same to the last byte.

In: `Sources`, a way to make a tokenizer.  Out: `prepare_folder`, `Progress`.  Used by: the command line.
Read next: prepared_text.py.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from pellucid.data.card import CardCounts, TextCard
from pellucid.data.pieces import printable
from pellucid.data.prepare import HELD_OUT_FILE, TRAIN_FILE, HeldOutLimit, open_prepared
from pellucid.data.prepared_folder import (
    CARD,
    DOCUMENTS,
    FORMAT,
    SAMPLE,
    TOKENIZER,
    UNFINISHED,
    VERSION,
    FolderCard,
    PreparedFolder,
    file_facts,
)
from pellucid.data.repeated_lines import HashFile
from pellucid.data.sources import Sources
from pellucid.data.split import Passage, SplitSampler, passages, split_of
from pellucid.data.token_file import TokenFile
from pellucid.data.token_writer import TokenWriter, WriterState
from pellucid.errors import DataError
from pellucid.text import EncodingPool, Stretch, TextTokenizer, load_tokenizer

TASK_CHARACTERS = 1 << 17  # 0.03 s of work and some 30 MB of the library's records
MOST_PASSAGES = 2048  # in a task, if they are short
SAVED_EVERY_SECONDS = 5.0
ASKED, PROGRESS, REASON, LINES, LOCK = "asked.json", "progress.json", "reason", "lines.hashes", ".lock"
MakeTokenizer = Callable[[Sources], tuple[TextTokenizer, str]]

try:
    import fcntl
except ImportError:  # Windows has no flock; there two processes are not kept apart
    fcntl = None


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


def prepare_folder(
    sources: Sources,
    folder: Path,
    make_tokenizer: MakeTokenizer,
    *,
    names: Sequence[str],
    asked: dict[str, Any],
    processes: int,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> PreparedFolder:
    """Make a prepared folder, or go on with one that the same call began.

    Args:
        sources: The text.
        folder: Where; nothing, or an empty folder. If it holds this very text with these settings, that is opened.
        make_tokenizer: Learns or loads the tokenizer, and says why it is that one; called once.
        names: What the sources are called.
        asked: What else decides the result: the tokenizer and the vocabulary that were asked for.
        processes: How many encode.
        on_progress: Called after every task.

    Returns:
        The folder, whole.

    Raises:
        DataError: if something else is there, another process is at work there, or the disk refuses.
    """
    asked = {**asked, "text": sources.fingerprint, "held_out_percent": sources.held_out_percent}
    work = folder.with_name(folder.name + UNFINISHED)
    try:
        if (folder / CARD).exists():
            there = PreparedFolder.open(folder)
            _require_same(there.card.asked, asked, folder)
            return there
        _require_vacant(folder)
        work.mkdir(parents=True, exist_ok=True)
        with (work / LOCK).open("a+", encoding="ascii") as lock:
            _take(lock, work)
            if not (work / CARD).exists():
                _begin_or_go_on(work, asked)
                tokenizer, reason = _tokenizer(sources, work, make_tokenizer)
                text = _encode(sources, work, tokenizer, processes, on_progress)
                said = {"sources": tuple(names), "asked": asked, "tokenizer_reason": reason, "text": text}
                _write_card(sources, work, tokenizer, said)
            _require_same(msgspec.json.decode((work / CARD).read_bytes(), type=FolderCard).asked, asked, work)
            _publish(work, folder)
    except OSError as error:
        raise DataError(
            f"to write a prepared folder at {printable(str(folder))}",
            came=f"“{error.strerror}”",
            remedy="make room, or choose a folder that can be written; then run the same command again",
        ) from error
    return PreparedFolder.open(folder)


def _require_vacant(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "a folder with other files in it" if folder.is_dir() else "a file"
        raise DataError(
            f"nothing, or an empty folder, at {printable(str(folder))}", came=what, remedy="choose another --out"
        )


def _take(lock: IO[str], work: Path) -> None:
    """Keep the folder for this process as long as the file is open."""
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DataError(
            f"{printable(str(work))} to be free",
            came="a folder that another process is writing",
            remedy="wait until it has finished, or choose another --out",
        ) from error


def _require_same(there: dict[str, Any], here: dict[str, Any], folder: Path) -> None:
    """Refuse to go on with another text or other settings."""
    there, here = (json.loads(json.dumps(asked)) for asked in (there, here))
    keys = [key for key in sorted(there | here) if there.get(key) != here.get(key)]
    if keys:
        told = [f"{key.replace('_', ' ')} {_short(here.get(key))} and not {_short(there.get(key))}" for key in keys]
        raise DataError(
            f"the text and the settings that {printable(str(folder))} was made with",
            came=", ".join(told),
            remedy="choose another --out, or remove that folder first",
        )


def _short(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))[:60]


def _begin_or_go_on(work: Path, asked: dict[str, Any]) -> None:
    if (work / ASKED).exists():
        _require_same(json.loads((work / ASKED).read_bytes()), asked, work)
        return
    for leftover in work.iterdir():
        if leftover.name != LOCK:
            leftover.unlink()
    _write_whole(work / ASKED, json.dumps(asked).encode())


def _tokenizer(sources: Sources, work: Path, make_tokenizer: MakeTokenizer) -> tuple[TextTokenizer, str]:
    """The tokenizer that was made before the kill, or a new one."""
    if not (work / TOKENIZER).exists():
        tokenizer, reason = make_tokenizer(sources)
        _write_whole(work / REASON, reason.encode())
        tokenizer.save(work)
    return load_tokenizer(work), (work / REASON).read_bytes().decode()


def _encode(
    sources: Sources, work: Path, tokenizer: TextTokenizer, processes: int, on_progress: Callable[[Progress], None]
) -> TextCard:
    """Write both token files and the sample, from where progress.json says; the card of the text."""
    done = _Done()
    if (work / PROGRESS).exists():
        done = msgspec.json.decode((work / PROGRESS).read_bytes(), type=_Done)
    begun, resumed_at, saved = time.monotonic(), done.characters, time.monotonic()
    counts, sampler, waiting = CardCounts(done.counts), SplitSampler(sources), deque[_Batch]()
    text = sources.fingerprint
    with (
        HashFile(work / LINES, count=done.lines) as lines,
        TokenWriter(work / TRAIN_FILE, tokenizer, text=text, state=done.train) as train,
        TokenWriter(work / HELD_OUT_FILE, tokenizer, text=text, state=done.held_out) as held_out,
        EncodingPool(tokenizer, processes=processes) as pool,
    ):
        for found in pool.encoded(_tasks(_batches(sources, sampler, done.passages), waiting)):
            batch = waiting.popleft()
            for (passage, kept), encoded in zip(batch, found, strict=True):
                counts.add(passage, encoded.tally)
                lines.add(encoded.tally.hashes)
                done.characters += len(passage.text)
                if kept:
                    writer = train if passage.side == "training" else held_out
                    if passage.opens:
                        writer.begin_document(tenth=passage.tenth)
                    writer.add(encoded.ids, characters=kept, escaped=encoded.escaped)
            done.passages += len(batch)
            on_progress(Progress(done.characters, sources.characters, resumed_at, time.monotonic() - begun))
            if time.monotonic() - saved >= SAVED_EVERY_SECONDS:
                done.train, done.held_out, done.lines = train.save(), held_out.save(), lines.save()
                done.counts = counts.state()
                _write_whole(work / PROGRESS, msgspec.json.encode(done))
                saved = time.monotonic()
        train.distinct_characters = held_out.distinct_characters = counts.training_letters
        card = counts.card(sources, told_lines=lines.count, repeated_lines=lines.repeated())
    _write_whole(work / SAMPLE, msgspec.json.encode(sampler.sample()))
    return card


_Batch = list[tuple[Passage, int]]


def _batches(sources: Sources, sampler: SplitSampler, passages_done: int) -> Iterator[_Batch]:
    """Passages in handfuls, each with how many of its characters become ids; the sampler sees all that are read."""
    limit = HeldOutLimit(sources)
    batch: _Batch = []
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


def _tasks(batches: Iterator[_Batch], waiting: deque[_Batch]) -> Iterator[list[Stretch]]:
    """What processes are told of each batch; the batch itself waits for what comes back."""
    for batch in batches:
        waiting.append(batch)
        yield [Stretch(passage.text, kept, passage.side == "held_out") for passage, kept in batch]


def _write_card(sources: Sources, work: Path, tokenizer: TextTokenizer, said: dict[str, Any]) -> None:
    _write_whole(work / DOCUMENTS, sources.documents.short_hashes().tobytes())
    train = TokenFile.open(work / TRAIN_FILE, tokenizer=tokenizer)
    data = open_prepared(work, tokenizer)
    extra = [path.name for path in work.glob("tokenizer_config.json")]
    card = FolderCard(
        format=FORMAT,
        version=VERSION,
        fingerprint=sources.fingerprint,
        alphabet=sources.alphabet,
        split=split_of(sources),
        notes=sources.notes,
        tokenizer=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        tokenizer_kind=tokenizer.kind,
        training_tokens=len(train),
        held_out_tokens=sum(len(piece.tokens) for piece in data.held_out),
        characters_per_token=data.characters_per_token,
        files={
            name: file_facts(work / name) for name in (TRAIN_FILE, HELD_OUT_FILE, TOKENIZER, SAMPLE, DOCUMENTS, *extra)
        },
        **said,
    )
    _write_whole(work / CARD, card.encode())


def _publish(work: Path, folder: Path) -> None:
    """Give the folder its name, when every byte of it is on the disk."""
    for leftover in (*work.glob("*.partial"), *(work / name for name in (ASKED, PROGRESS, LINES, REASON, LOCK))):
        leftover.unlink(missing_ok=True)
    for path in (*work.iterdir(), work):
        _force_to_disk(path)
    if folder.exists():
        folder.rmdir()
    work.rename(folder)
    _force_to_disk(folder.absolute().parent)


def _write_whole(path: Path, content: bytes) -> None:
    unfinished = path.with_name(path.name + ".new")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync a folder; nothing more can be done there
            raise
    finally:
        os.close(descriptor)
