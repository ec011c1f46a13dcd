"""Sources → a prepared folder: encoded and counted on several processes, within bounded memory, able to go on.

    sources ─passages─▶ tasks ─▶ [processes: ids, counts] ─in order─▶ token files, card      (DIR.unfinished)
                                                                             └─ all on the disk: renamed to DIR

Everything is made in `DIR.unfinished`. After a kill the same command reads the text again, checks that it is the same,
and goes on where encoding.py says; the result is the same to the last byte.

In: `Sources`, a way to make a tokenizer.  Out: `prepare_folder`, `unfinished`.  Used by: the command line.
Read next: prepared_text.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from pellucid.data.encoding import LINES, PROGRESS, Progress, encode, write_whole
from pellucid.data.pieces import printable
from pellucid.data.prepare import HELD_OUT_FILE, TRAIN_FILE, open_prepared
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
from pellucid.data.sources import Sources
from pellucid.data.split import split_of
from pellucid.data.token_file import TokenFile
from pellucid.disk import force_to_disk
from pellucid.errors import DataError
from pellucid.text import TextTokenizer, load_tokenizer

ASKED, REASON, LOCK = "asked.json", "reason", ".lock"
HASH = re.compile("[0-9a-f]{64}")
MakeTokenizer = Callable[[Sources], tuple[TextTokenizer, str]]

try:
    import fcntl
except ImportError:  # Windows has no flock; there two processes are not kept apart
    fcntl = None


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
    work = unfinished(folder)
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
                with _removed_if_not_begun(work):
                    tokenizer, reason = _tokenizer(sources, work, make_tokenizer)
                text = encode(sources, work, tokenizer, processes, on_progress)
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


def unfinished(folder: Path) -> Path:
    """Where a folder is made before it gets its name.

    Example:
        >>> unfinished(Path("books")).name
        'books.unfinished'
    """
    absolute = Path(os.path.abspath(folder))
    return absolute.with_name(absolute.name + UNFINISHED)


@contextmanager
def _removed_if_not_begun(work: Path) -> Generator[None]:
    """A mistake in what was asked leaves nothing behind."""
    try:
        yield
    except Exception:
        shutil.rmtree(work)
        raise


def _require_vacant(folder: Path) -> None:
    if os.path.abspath(folder) == os.getcwd():
        raise DataError("a folder to make", came="the one you are in", remedy="name a new one with --out")
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
        told = [_told(key, here.get(key), there.get(key)) for key in keys]
        raise DataError(
            f"the text and the settings that {printable(str(folder))} was made with",
            came=", ".join(told),
            remedy="choose another --out, or remove that folder first",
        )


def _told(key: str, here: Any, there: Any) -> str:
    """One thing that is not the same: of a hash nobody wants the digits.

    Example:
        >>> _told("held_out", 5, 10), _told("text", "ab" * 32, "cd" * 32)
        ('held out 5 and not 10', 'another text')
    """
    name = key.replace("_", " ")
    if all(isinstance(one, str) and HASH.fullmatch(one) for one in (here, there)):
        return f"another {name}"
    return f"{name} {_short(here)} and not {_short(there)}"


def _short(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))[:60]


def _begin_or_go_on(work: Path, asked: dict[str, Any]) -> None:
    if (work / ASKED).exists():
        _require_same(json.loads((work / ASKED).read_bytes()), asked, work)
        return
    for leftover in work.iterdir():
        if leftover.name != LOCK:
            leftover.unlink()
    write_whole(work / ASKED, json.dumps(asked).encode())


def _tokenizer(sources: Sources, work: Path, make_tokenizer: MakeTokenizer) -> tuple[TextTokenizer, str]:
    """The tokenizer that was made before the kill, or a new one."""
    if not (work / TOKENIZER).exists():
        tokenizer, reason = make_tokenizer(sources)
        write_whole(work / REASON, reason.encode())
        tokenizer.save(work)
    return load_tokenizer(work), (work / REASON).read_bytes().decode()


def _write_card(sources: Sources, work: Path, tokenizer: TextTokenizer, said: dict[str, Any]) -> None:
    write_whole(work / DOCUMENTS, sources.documents.short_hashes().tobytes())
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
    write_whole(work / CARD, card.encode())


def _publish(work: Path, folder: Path) -> None:
    """Give the folder its name, when every byte of it is on the disk."""
    for leftover in (*work.glob("*.partial"), *(work / name for name in (ASKED, PROGRESS, LINES, REASON, LOCK))):
        leftover.unlink(missing_ok=True)
    for path in (*work.iterdir(), work):
        force_to_disk(path)
    if folder.exists():
        folder.rmdir()
    work.rename(folder)
    force_to_disk(work.parent)
