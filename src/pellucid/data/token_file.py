r"""The token file: ids on disk, mapped into memory, with a header that says what they are.

    byte 0      b"\x89PELTOK\n", then one JSON object, then spaces up to byte 4096   (`head -c 4096 FILE` shows it)
    byte 4096   the ids, little-endian, uint16 if the vocabulary has at most 65,536 ids, else uint32
    then        zeros up to a multiple of 8, and a table of documents: rows of four little-endian int64
                (first token, characters, characters the tokenizer cannot write, tenth of the text)
    then        of chats, a table of answers: rows of two little-endian int64
                (first token, the one after the last); of these tokens alone a loss is taken

Every document begins with the end-of-text token, and one more closes the file: so the start of a document is always
predicted from "end of text", an end of text is taught at each document's end, and the ids form a ring, the last being
the first again.

Opening checks sizes and never reads the ids; reading gives the memory of pages long read back to the system, so that a
file of any size is used within bounded memory.

In: a path.  Out: `TokenFile`, `TokenHeader`, `check_vocabulary`.  Used by: token_writer.py, batches.py.
Read next: token_writer.py.
"""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from pellucid.data.pieces import printable
from pellucid.errors import DataError
from pellucid.text import TextTokenizer

MAGIC = b"\x89PELTOK\n"  # as in PNG: the first byte is not text, and the line end shows a mangled copy
VERSION = 1
TOKENS_AT = 4096  # a page, so that the ids are aligned whatever their type
LARGEST_UINT16_VOCABULARY = 1 << 16
DOCUMENT_COLUMNS = 4
ANSWER_COLUMNS = 2
KINDS = ("text", "chats")
TOUCHED_BYTES = 1 << 16  # Linux maps up to 16 pages around the one that is touched
RELEASE_BYTES = 128 << 20  # after touching so much, give the pages back


@dataclass(frozen=True, kw_only=True)
class TokenHeader:
    """What a token file says about itself; its fields are the keys of the JSON object."""

    version: int
    token_type: str
    """uint16 or uint32."""
    vocab_size: int
    tokenizer: str
    """The tokenizer's fingerprint."""
    end_of_text_id: int
    text: str
    """The fingerprint of the text."""
    num_tokens: int
    largest_id: int
    characters: int
    distinct_characters: int
    num_documents: int
    kind: str = "text"
    """text: every token is learned; chats: those of answers alone."""
    num_answers: int = 0

    @property
    def token_bytes(self) -> int:
        """Bytes of one id."""
        return {"uint16": 2, "uint32": 4}[self.token_type]

    @property
    def documents_at(self) -> int:
        """Where the table of documents begins: the next multiple of 8 after the ids."""
        return -(-(TOKENS_AT + self.num_tokens * self.token_bytes) // 8) * 8

    @property
    def answers_at(self) -> int:
        """Where the table of answers begins."""
        return self.documents_at + self.num_documents * DOCUMENT_COLUMNS * 8

    @property
    def file_bytes(self) -> int:
        """Size of the whole file."""
        return self.answers_at + self.num_answers * ANSWER_COLUMNS * 8

    def encode(self) -> bytes:
        """Write the first 4096 bytes of the file."""
        described = MAGIC + json.dumps(asdict(self)).encode("ascii") + b"\n"
        return described.ljust(TOKENS_AT)


def token_type_for(vocab_size: int) -> str:
    """Choose the smallest type that holds every id.

    Args:
        vocab_size: Number of ids, 0 to vocab_size - 1.

    Returns:
        "uint16" or "uint32".

    Example:
        >>> token_type_for(65_536), token_type_for(65_537)
        ('uint16', 'uint32')
    """
    return "uint16" if vocab_size <= LARGEST_UINT16_VOCABULARY else "uint32"


class TokenFile:
    """An open token file. `len(file)` is its number of tokens; `read` gives ids.

    Attributes:
        header: What the file says about itself.
        documents: Rows (first token, characters, escaped characters, tenth), one a document.
        answers: Of chats, rows (first token, the one after the last), one an answer, in order.
    """

    def __init__(self, path: Path, header: TokenHeader, mapped: mmap.mmap) -> None:
        self.path, self.header, self._mapped = path, header, mapped
        self._ids = np.frombuffer(
            mapped,
            dtype=np.dtype(header.token_type).newbyteorder("<"),
            count=header.num_tokens,
            offset=TOKENS_AT,
        )
        tables = np.frombuffer(mapped, dtype="<i8", offset=header.documents_at)
        documents, answers = np.split(tables, [header.num_documents * DOCUMENT_COLUMNS])
        self.documents = documents.reshape(-1, DOCUMENT_COLUMNS)
        self.answers = answers.reshape(-1, ANSWER_COLUMNS)
        self._bytes_touched = 0

    @classmethod
    def open(cls, path: Path, *, tokenizer: TextTokenizer | None = None, token_type: str | None = None) -> TokenFile:
        """Open a file and check that it is whole, and what the caller takes it for.

        Args:
            path: The file.
            tokenizer: If given, the file must have been written with this very one.
            token_type: If given, "uint16" or "uint32", the type the file must have.

        Returns:
            The open file.

        Raises:
            DataError: if the file is missing, of another kind, version, type or tokenizer, or cut short.
        """
        name = printable(str(path))
        try:
            with open(path, "rb") as file:
                header = _header(file.read(TOKENS_AT), name)
                size = os.fstat(file.fileno()).st_size
                if size != header.file_bytes:
                    raise DataError(
                        f"{header.file_bytes:,} bytes in {name}", came=f"{size:,}", remedy="train on the text anew"
                    )
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise DataError(
                f"a token file at {name}", came=f"“{error.strerror}”", remedy="train on the text anew"
            ) from error
        if token_type is not None and token_type != header.token_type:
            raise DataError(
                f"ids of type {token_type} in {name}", came=header.token_type, remedy=f"read it as {header.token_type}"
            )
        if tokenizer is not None and tokenizer.fingerprint != header.tokenizer:
            raise DataError(
                f"ids of the tokenizer at hand (vocabulary {tokenizer.vocab_size:,}, {tokenizer.fingerprint[:12]})",
                came=f"ids of another in {name} (vocabulary {header.vocab_size:,}, {header.tokenizer[:12]})",
                remedy="train on the text anew, or put the tokenizer back",
            )
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_RANDOM)  # rows are read in random order: reading ahead is waste
        return cls(Path(path), header, mapped)

    def __len__(self) -> int:
        return self.header.num_tokens

    @property
    def num_scored(self) -> int:
        """How many tokens are learned."""
        if self.header.kind == "text":
            return len(self) - len(self.documents) - 1
        return int((self.answers[:, 1] - self.answers[:, 0]).sum())

    def is_scored(self, start: int, stop: int) -> np.ndarray:
        """Say of tokens start … stop - 1 which are learned: of text all, of chats those of answers.

        Args:
            start: First token.
            stop: The one after the last.

        Returns:
            A truth value for each.
        """
        if self.header.kind == "text":
            return np.ones(stop - start, dtype=bool)
        scored = np.zeros(stop - start, dtype=bool)
        first = int(np.searchsorted(self.answers[:, 1], start, side="right"))
        for begin, end in self.answers[first : int(np.searchsorted(self.answers[:, 0], stop))].tolist():
            scored[max(begin - start, 0) : end - start] = True
        return scored

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read ids start … stop - 1.

        A page that was touched counts as this process's memory until it is given back, so what was touched is counted
        and given back now and then. It stays in the system's cache.

        Args:
            start: First token.
            stop: The one after the last.

        Returns:
            A copy, in the file's type.

        Raises:
            DataError: if the range is not within the file.
        """
        if not 0 <= start <= stop <= len(self):
            raise DataError(
                f"tokens 0 to {len(self):,} of {printable(str(self.path))}",
                came=f"{start:,} to {stop:,}",
                remedy="ask for tokens that are there",
            )
        ids = self._ids[start:stop].copy()
        self._bytes_touched += max(TOUCHED_BYTES, ids.nbytes)
        if self._bytes_touched > RELEASE_BYTES and hasattr(self._mapped, "madvise"):
            self._mapped.madvise(mmap.MADV_DONTNEED)
            self._bytes_touched = 0
        return ids


def check_vocabulary(tokens: TokenFile, vocab_size: int) -> None:
    """Refuse, before the first step, ids that a model has no row for.

    Args:
        tokens: The data.
        vocab_size: The model's.

    Raises:
        DataError: if the largest id in the file is outside the model's vocabulary.
    """
    if tokens.header.largest_id >= vocab_size:
        raise DataError(
            f"ids below the model's vocabulary of {vocab_size:,} in {printable(str(tokens.path))}",
            came=f"data prepared with a vocabulary of {tokens.header.vocab_size:,}, its largest id"
            f" {tokens.header.largest_id:,}",
            remedy=f"give the model vocab_size={tokens.header.vocab_size}, or prepare the text with its own tokenizer",
        )


def _header(page: bytes, name: str) -> TokenHeader:
    """Read a header, believing nothing."""
    remedy = "train on the text anew"
    if not page.startswith(MAGIC):
        raise DataError(f"a token file at {name}", came="another kind of file", remedy=remedy)
    try:
        described = json.loads(page[len(MAGIC) :])
    except (ValueError, RecursionError) as error:
        raise DataError(f"a header in {name}", came="one that cannot be read", remedy=remedy) from error
    if not isinstance(described, dict) or described.get("version") != VERSION:
        version = described.get("version") if isinstance(described, dict) else None
        raise DataError(
            f"a token file of version {VERSION} at {name}",
            came=f"version {version!r}",
            remedy="train on the text anew with this pellucid",
        )
    described.setdefault("kind", "text")  # before there were chats, nobody said
    described.setdefault("num_answers", 0)
    wanted = {field.name: str if field.type == "str" else int for field in fields(TokenHeader)}
    sound = (
        wanted.keys() <= described.keys()  # a later pellucid may say more
        and all(type(described[key]) is kind for key, kind in wanted.items())
        and all(described[key] >= 0 for key, kind in wanted.items() if kind is int)
        and described["token_type"] == token_type_for(described["vocab_size"])
        and described["largest_id"] < described["vocab_size"]
        and described["kind"] in KINDS
        and (described["kind"] == "chats" or not described["num_answers"])
    )
    if not sound:
        raise DataError(f"a sound header in {name}", came="one that contradicts itself", remedy=remedy)
    return TokenHeader(**{key: described[key] for key in wanted})
