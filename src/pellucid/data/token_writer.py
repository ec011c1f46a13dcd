"""Ids → a token file, document by document: whole or not there, and able to go on after a kill.

A file is written beside its place and renamed when complete. Whoever writes for long calls `save` now and then: what
has been written by then is on the disk, and a writer that is given the `WriterState` goes on from there, whatever was
written after it.

In: ids.  Out: `TokenWriter`, `WriterState`.  Used by: prepare.py, prepare_folder.py.  Read next: prepare.py.
"""

from __future__ import annotations

import os
import shutil
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pellucid.data.token_file import ANSWER_COLUMNS, DOCUMENT_COLUMNS, TOKENS_AT, VERSION, TokenHeader, token_type_for
from pellucid.errors import DataError
from pellucid.text import TextTokenizer

ROW_BYTES = 8 * DOCUMENT_COLUMNS


@dataclass(frozen=True, kw_only=True)
class WriterState:
    """How far a token file had come when it was saved."""

    num_tokens: int = 0
    largest_id: int = 0
    characters: int = 0
    """Of the documents that are closed."""
    num_documents: int = 0
    """Documents that are closed."""
    open_document: tuple[int, ...] = ()
    """The row of the last, which grows."""


class TokenWriter:
    """Write a token file document by document; a context manager that leaves a whole file or none.

    Args:
        path: Where the file shall be.
        tokenizer: Whose ids these are.
        text: Fingerprint of the text.
        state: Where to go on: what `save` gave before. A new writer that is to be saved gets an empty one. Then what is
            half done stays on the disk if the block fails, beside `path`; the rows of documents stay in any case.

    Raises:
        DataError: on entering, if what `state` tells of is not there.

    Example:
        >>> import tempfile
        >>> from pellucid.data.token_file import TokenFile
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer = character_tokenizer(["banana"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with TokenWriter(Path(folder, "x.tokens"), tokenizer, text="") as writer:
        ...         writer.begin_document(tenth=0)
        ...         writer.add(tokenizer.encode("banana"), characters=6)
        ...     len(TokenFile.open(Path(folder, "x.tokens")))
        8
    """

    def __init__(self, path: Path, tokenizer: TextTokenizer, *, text: str, state: WriterState | None = None) -> None:
        self._path, self._partial = path, path.with_name(path.name + ".partial")
        self._closed_path = path.with_name(path.name + ".documents.partial")
        self._tokenizer, self._text = tokenizer, text
        self._type = token_type_for(tokenizer.vocab_size)
        self._end_of_text = np.array([tokenizer.end_of_text_id])
        begins = [one for one in tokenizer.beginning_ids if one != tokenizer.end_of_text_id]
        self._opening = np.array([tokenizer.end_of_text_id, *begins])  # some models read no text without their own
        self._keeps, begun = state is not None, state or WriterState()
        self._num_tokens, self._largest = begun.num_tokens, begun.largest_id
        self._characters, self._num_documents = begun.characters, begun.num_documents
        self._open = list(begun.open_document)
        self._closed = array("q")  # rows of closed documents that are not in their file yet
        self._answers = array("q")
        self.distinct_characters = 0
        self.kind = "text"
        """As in `TokenHeader`."""

    def __enter__(self) -> TokenWriter:
        if self._keeps and self._path.exists():  # killed between two renames: what it had become is no longer whole
            self._path.replace(self._partial)
        token_bytes = np.dtype(self._type).itemsize
        self._file = _opened(self._partial, TOKENS_AT + self._num_tokens * token_bytes)
        self._rows = _opened(self._closed_path, self._num_documents * ROW_BYTES) if self._keeps else None
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        keep = self._keeps and kind is not None
        try:
            with self._file:
                if kind is None:
                    self._finish()
            if kind is None:
                self._partial.replace(self._path)
        except BaseException:
            keep = self._keeps
            raise
        finally:
            if self._rows is not None:
                self._rows.close()
            if not keep:
                self._partial.unlink(missing_ok=True)

    def begin_document(self, *, tenth: int) -> None:
        """Open a document of this tenth of the text: writes the end-of-text token that it begins with, and what the
        tokenizer puts before every text, if anything.

        Args:
            tenth: 0 to 9.
        """
        self._begin(tenth, self._opening)

    def add_chat(self, ids: np.ndarray, is_answer: np.ndarray, *, characters: int, tenth: int) -> None:
        """Append a conversation, as a document of its own, with nothing before it but the end of the one before.

        Args:
            ids: All of it, as a model reads it.
            is_answer: Which of them are learned.
            characters: How many characters the answers have.
            tenth: 0 to 9.

        Raises:
            DataError: if an id is outside the vocabulary.
        """
        self._begin(tenth, self._end_of_text)
        edges = np.flatnonzero(np.diff(is_answer, prepend=False, append=False)) + self._num_tokens
        self._answers.extend(edges.tolist())
        self.add(ids, characters=characters)

    def _begin(self, tenth: int, opening: np.ndarray) -> None:
        self._close_document()
        self._open = [self._num_tokens, 0, 0, tenth]
        self._append(opening)

    def add(self, ids: np.ndarray, *, characters: int, escaped: int = 0) -> None:
        """Append ids to the open document.

        Args:
            ids: Integers below the vocabulary's size.
            characters: How many characters of text they stand for, the escaped ones included.
            escaped: How many of these characters the tokenizer cannot write and the ids leave out.

        Raises:
            DataError: if an id is outside the vocabulary.
        """
        self._open[1] += characters
        self._open[2] += escaped
        self._append(ids)

    def save(self) -> WriterState:
        """Bring everything so far to the disk.

        Returns:
            Where a writer can go on, on the same path with the same tokenizer.
        """
        if self._rows is not None:
            self._rows.write(self._closed.tobytes())
            self._closed = array("q")
        for file in (self._file, self._rows):
            if file is not None:
                file.flush()
                os.fsync(file.fileno())
        return WriterState(
            num_tokens=self._num_tokens,
            largest_id=self._largest,
            characters=self._characters,
            num_documents=self._num_documents,
            open_document=tuple(self._open),
        )

    def _close_document(self) -> None:
        if self._open:
            self._closed.extend(self._open)
            self._characters += self._open[1]
            self._num_documents += 1
            self._open = []

    def _append(self, ids: np.ndarray) -> None:
        if not len(ids):
            return
        smallest, largest = int(ids.min()), int(ids.max())
        if smallest < 0 or largest >= self._tokenizer.vocab_size:
            raise DataError(
                f"ids from 0 to {self._tokenizer.vocab_size - 1:,}",
                came=f"{smallest if smallest < 0 else largest:,}",
                remedy="use the tokenizer that the file is written for",
            )
        self._largest = max(self._largest, largest)
        self._file.write(ids.astype(np.dtype(self._type).newbyteorder("<")).tobytes())
        self._num_tokens += len(ids)

    def _finish(self) -> None:
        self._append(self._end_of_text)
        self._close_document()
        header = TokenHeader(
            version=VERSION,
            token_type=self._type,
            vocab_size=self._tokenizer.vocab_size,
            tokenizer=self._tokenizer.fingerprint,
            end_of_text_id=self._tokenizer.end_of_text_id,
            text=self._text,
            num_tokens=self._num_tokens,
            largest_id=self._largest,
            characters=self._characters,
            distinct_characters=self.distinct_characters,
            num_documents=self._num_documents,
            kind=self.kind,
            num_answers=len(self._answers) // ANSWER_COLUMNS,
        )
        self._file.write(bytes(header.documents_at - self._file.tell()))
        if self._rows is not None:
            self._rows.seek(0)
            shutil.copyfileobj(self._rows, self._file)
        for table in (self._closed, self._answers):
            self._file.write(np.array(table, dtype=np.int64).astype("<i8").tobytes())
        self._file.seek(0)
        self._file.write(header.encode())
        self._file.flush()
        os.fsync(self._file.fileno())


def _opened(path: Path, size: int) -> BinaryIO:
    """A file of which the first `size` bytes are kept, to be written on from there; a new one begins with a header."""
    file = path.open("r+b" if path.exists() else "w+b")
    there = file.seek(0, os.SEEK_END)
    if there < size and size > TOKENS_AT:
        file.close()
        raise DataError(f"{size:,} bytes in {path.name}", came=f"{there:,}", remedy="begin anew")
    file.truncate(size)
    file.seek(size)
    return file
