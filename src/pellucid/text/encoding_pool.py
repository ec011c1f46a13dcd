"""Texts → ids on several processes, in order, with little memory.

The library's own threads wait for each other (two encode hardly faster than one), and its records take 150 bytes a
token; processes wait for nobody, each holds the records of one small task, and what comes back is two or four bytes a
token. A task's ids depend on its text alone, so nothing depends on how many processes there are.

Workers are started anew and not copied: they import this room, which knows no torch. They leave Ctrl-C to their parent,
and end when it is gone.

In: a tokenizer, tasks.  Out: `Stretch`, `Encoded`, `EncodingPool`.  Used by: data.  Read next: the room data.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from types import TracebackType
from typing import Any

import numpy as np

from pellucid.errors import TokenizerError, UserError
from pellucid.text.tally import Tally, tally
from pellucid.text.tokenizer import TextTokenizer

WAITING = 2
"""Tasks for each process, so that none is ever without one, and little text waits."""


@dataclass(frozen=True)
class Stretch:
    """A piece of text, and what is wanted of it."""

    text: str
    encoded: int
    """How many of its characters shall become ids, the first ones; all are counted."""
    may_escape: bool
    """Whether characters without an id may be left out, and counted; else they are an error."""


@dataclass(frozen=True)
class Encoded:
    """What became of a stretch."""

    ids: np.ndarray
    escaped: int
    tally: Tally


Task = Sequence[Stretch]
Failure = tuple[str, str, str]


class EncodingPool:
    """Processes that encode; a context manager.

    Args:
        tokenizer: What they encode with.
        processes: How many; 1 works in this very process.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> with EncodingPool(character_tokenizer(["banana"]), processes=1) as pool:
        ...     [[found.ids.tolist() for found in task] for task in pool.encoded([[Stretch("nab", 2, False)]])]
        [[[3, 1]]]
    """

    def __init__(self, tokenizer: TextTokenizer, *, processes: int) -> None:
        self.processes = processes
        self._tokenizer = tokenizer
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> "EncodingPool":
        if self.processes > 1:
            self._executor = ProcessPoolExecutor(
                self.processes,
                mp_context=get_context("spawn"),
                initializer=_begin,
                initargs=(self._tokenizer.definition, self._tokenizer.end_of_text),
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def encoded(self, tasks: Iterable[Task]) -> Iterator[list[Encoded]]:
        """Encode tasks side by side.

        Args:
            tasks: Asked for no faster than they are done.

        Yields:
            For each task, in order, what became of its stretches.

        Raises:
            TokenizerError: if a stretch has characters without an id and may not lose them.
            UserError: if a process was killed from outside.
        """
        if self._executor is None:
            for task in tasks:
                yield _answer(encode_task(self._tokenizer, task))
            return
        waiting: deque[Future[list[Encoded] | Failure]] = deque()
        try:
            for task in tasks:
                waiting.append(self._executor.submit(_work, task))
                if len(waiting) >= WAITING * self.processes:
                    yield _answer(waiting.popleft().result())
            while waiting:
                yield _answer(waiting.popleft().result())
        except BrokenProcessPool as error:
            raise UserError(
                f"{self.processes} processes that encode text",
                came="one that was killed from outside, perhaps for want of memory",
                remedy="run the same command again, with fewer --processes if memory is short",
            ) from error


def encode_task(tokenizer: TextTokenizer, task: Task) -> list[Encoded] | Failure:
    """Encode the stretches of one task; what the tokenizer refuses comes back as the parts of its sentence.

    Args:
        tokenizer: What to encode with.
        task: Stretches of text.
    """
    texts, escaped = [], []
    for stretch in task:
        text = full = stretch.text[: stretch.encoded]
        if stretch.may_escape and (unknown := tokenizer.unknown_characters(text)):
            text = text.translate(dict.fromkeys(map(ord, unknown)))
        texts.append(text)
        escaped.append(len(full) - len(text))
    try:
        ids = tokenizer.encode_batch(texts)
    except TokenizerError as error:
        return error.expected, error.came, error.remedy
    kind = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
    return [
        Encoded(some.astype(kind), missing, tally(stretch.text))
        for some, missing, stretch in zip(ids, escaped, task, strict=True)
    ]


def _answer(found: list[Encoded] | Failure) -> list[Encoded]:
    if isinstance(found, tuple):
        expected, came, remedy = found
        raise TokenizerError(expected, came=came, remedy=remedy)
    return found


_worker: dict[str, Any] = {}
"""In a worker: its tokenizer."""


def _begin(definition: str, end_of_text: str) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads inside would be as many again as there are processes
    _worker["tokenizer"] = TextTokenizer(definition, end_of_text=end_of_text)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot say goodbye: without this, its workers would wait for it forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Task) -> list[Encoded] | Failure:
    return encode_task(_worker["tokenizer"], task)
