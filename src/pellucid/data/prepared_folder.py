"""A prepared folder: a text as ids, with its tokenizer, its data card, and a sample for the yardsticks.

    DIR/
      card.json           what the text is like, what was asked, and the size and hash of every other file
      tokenizer.json
      train.tokens        the training side of the split; held_out.tokens: the other, of a long text the scored part
      sample.json         both sides as text, or of a long text parts next to each cut: what the yardsticks look at
      documents.hashes    eight bytes of each document's SHA-256, in order: so that copies in another folder are found

It gets its name only when all of it is on the disk, so a folder with a card is whole. Opening it reads no more than
16 MB, however large it is; whether it is still what a run began with is seen from times and, where these differ, from
the hash of every byte.

In: a path.  Out: `PreparedFolder`, `is_prepared`, `FolderCard`.  Used by: prepare_folder.py, prepared_text.py.
Read next: prepare_folder.py.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pellucid.data.card import TextCard
from pellucid.data.pieces import printable
from pellucid.data.prepare import HELD_OUT_FILE, TRAIN_FILE, PreparedData, open_prepared
from pellucid.data.split import Split, SplitSample
from pellucid.errors import DataError
from pellucid.text import TextTokenizer, load_tokenizer

CARD, TOKENIZER, SAMPLE, DOCUMENTS = "card.json", "tokenizer.json", "sample.json", "documents.hashes"
FORMAT, VERSION = "pellucid-prepared", 1
UNFINISHED = ".unfinished"
"""What the name of a folder that is being made ends in."""
SAMPLED_BLOCKS, BLOCK_BYTES = 256, 1 << 16
HASHED_TOGETHER = 1 << 20


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """A file of the folder, as it was when it was made."""

    num_bytes: int
    sha256: str
    sampled: str
    """SHA-256 of 256 stretches of 64 KiB from all over it: what is looked at whenever it is opened."""


@dataclass(frozen=True, kw_only=True)
class FolderCard:
    """What card.json says."""

    format: str
    version: int
    sources: tuple[str, ...]
    """As they were named."""
    asked: dict[str, Any]
    """The settings."""
    fingerprint: str
    """Of the text."""
    alphabet: str
    text: TextCard
    split: Split
    notes: tuple[str, ...]
    """What was said of the text when it was read."""
    tokenizer: str
    """Its fingerprint."""
    vocab_size: int
    tokenizer_kind: str
    tokenizer_reason: str
    """Why this one; empty if it was asked for."""
    training_tokens: int
    held_out_tokens: int
    characters_per_token: float
    files: dict[str, FileFacts]

    def encode(self) -> bytes:
        """As the file has it."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True)
class PreparedFolder:
    """An open prepared folder.

    Attributes:
        path: Where it is.
        card: What its card says.
    """

    path: Path
    card: FolderCard

    @classmethod
    def open(cls, path: Path) -> PreparedFolder:
        """Open a folder and check that it is whole.

        Args:
            path: The folder.

        Returns:
            The folder; no token was read.

        Raises:
            DataError: if it is no prepared folder, was not finished, or a file of it is missing or changed.
        """
        folder = cls(path, _card(path))
        for name, facts in folder.card.files.items():
            size = _size(path / name)
            if size != facts.num_bytes or sampled_hash(path / name) != facts.sampled:
                raise _changed(path / name, "when the folder was made", size)
        return folder

    @classmethod
    def reopen(cls, facts: dict[str, Any]) -> PreparedFolder:
        """Open a folder that a run has used before, and check that it is the same.

        Args:
            facts: What `facts` gave then.

        Raises:
            DataError: if it is gone, or any byte of its files differs.
        """
        path = Path(facts["path"])
        folder = cls(path, _card(path))
        for name, before in facts["files"].items():
            size = _size(path / name)
            same = size == before["num_bytes"] and sampled_hash(path / name) == before["sampled"]
            if same and os.stat(path / name).st_mtime_ns != before["changed_ns"]:
                same = full_hash(path / name) == before["sha256"]
            if not same:
                raise _changed(path / name, "when the run began", size)
        return folder

    def facts(self) -> dict[str, Any]:
        """Where it is and what its files are, for run.json."""
        return {
            "path": str(self.path.absolute()),
            "text": self.card.fingerprint,
            "files": {
                name: asdict(facts) | {"changed_ns": os.stat(self.path / name).st_mtime_ns}
                for name, facts in self.card.files.items()
            },
        }

    def tokenizer(self) -> TextTokenizer:
        """The tokenizer."""
        return load_tokenizer(self.path)

    def data(self, tokenizer: TextTokenizer) -> PreparedData:
        """Both sides as ids."""
        return open_prepared(self.path, tokenizer)

    def sample(self) -> SplitSample:
        """Both sides as text, or parts of them."""
        return msgspec.json.decode((self.path / SAMPLE).read_bytes(), type=SplitSample)

    def documents(self) -> np.ndarray:
        """Eight bytes of each document's hash."""
        return np.fromfile(self.path / DOCUMENTS, dtype="<u8")


def is_prepared(path: Path) -> bool:
    """Whether a path is a prepared folder, or one that is still being made."""
    return path.is_dir() and ((path / CARD).is_file() or path.name.endswith(UNFINISHED))


def file_facts(path: Path) -> FileFacts:
    """What the card says of a file.

    Args:
        path: The file, complete.
    """
    return FileFacts(num_bytes=path.stat().st_size, sha256=full_hash(path), sampled=sampled_hash(path))


def full_hash(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASHED_TOGETHER):
            digest.update(block)
    return digest.hexdigest()


def sampled_hash(path: Path) -> str:
    """SHA-256 of stretches from all over a file, its beginning and end among them; of a short file, of all of it."""
    digest, last = hashlib.sha256(), path.stat().st_size - BLOCK_BYTES
    if last <= SAMPLED_BLOCKS * BLOCK_BYTES:
        return full_hash(path)
    with path.open("rb") as file:
        for number in range(SAMPLED_BLOCKS):
            file.seek(last * number // (SAMPLED_BLOCKS - 1))
            digest.update(file.read(BLOCK_BYTES))
    return digest.hexdigest()


def _card(path: Path) -> FolderCard:
    name = printable(str(path))
    if path.name.endswith(UNFINISHED):
        raise DataError(
            f"a prepared folder at {name}",
            came="one that is still being made, or was left half done",
            remedy="run the same pellucid prepare again: it goes on where it was",
        )
    try:
        card = msgspec.json.decode((path / CARD).read_bytes(), type=FolderCard)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise DataError(
            f"a prepared folder at {name}", came=f"“{printable(str(error))}”", remedy="prepare the text anew"
        ) from error
    if (card.format, card.version) != (FORMAT, VERSION):
        raise DataError(
            f"a prepared folder of version {VERSION} at {name}",
            came=f"“{printable(card.format)}” of version {card.version}",
            remedy="prepare the text anew with this pellucid",
        )
    if missing := {TRAIN_FILE, HELD_OUT_FILE, TOKENIZER, SAMPLE, DOCUMENTS} - card.files.keys():
        raise DataError(f"{min(missing)} on the card of {name}", came="no such line", remedy="prepare the text anew")
    return card


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _changed(path: Path, when: str, size: int | None) -> DataError:
    return DataError(
        f"{printable(str(path))} as it was {when}",
        came="no file" if size is None else "a file that has changed since",
        remedy="put it back, or prepare the text anew and begin a new run",
    )
