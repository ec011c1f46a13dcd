"""Texts → ids on several processes, in order, with little memory.

The library's own threads wait for each other (two encode hardly faster than one), and its records take 150 bytes a
token; processes wait for nobody, each holds the records of one small task, and what comes back is two or four bytes a
token. A task's ids depend on its text alone, so nothing depends on how many processes there are.

A worker is a new Python that imports this room and no torch. It is in a group of its own, so that Ctrl-C does not reach
it, and it ends when its input does: when the pool is closed, or its owner was killed.

In: a tokenizer, tasks.  Out: `EncodingPool`.  Used by: data.  Read next: the room data.
"""

import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from types import TracebackType
from typing import BinaryIO, cast

from pellucid.errors import TokenizerError, UserError
from pellucid.text.encoding_worker import Answer, Refused, Stretch, encode_task, receive, send
from pellucid.text.tokenizer import TextTokenizer

WAITING = 2
"""Tasks for each process, so that none is ever without one, and little text waits."""
START = "from pellucid.text.encoding_worker import work; work()"

Task = Sequence[Stretch]


class EncodingPool:
    """Processes that encode; a context manager.

    Args:
        tokenizer: What they encode with.
        processes: How many; 1 works in this very process.

    Example:
        >>> from pellucid.text import Stretch, character_tokenizer
        >>> with EncodingPool(character_tokenizer(["banana"]), processes=1) as pool:
        ...     [answer.encoded[0].ids.tolist() for answer in pool.encoded([[Stretch("nab", 2, False)]])]
        [[3, 1]]
    """

    def __init__(self, tokenizer: TextTokenizer, *, processes: int) -> None:
        self.processes = processes
        self._tokenizer = tokenizer
        self._workers: list[subprocess.Popen[bytes]] = []
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def __enter__(self) -> "EncodingPool":
        if self.processes > 1:
            self._threads = ThreadPoolExecutor(self.processes)  # one waits for each worker
            for _ in range(self.processes):
                worker = subprocess.Popen(
                    [sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
                )
                self._workers.append(worker)
                self._threads.submit(self._begin, worker)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers:
            if kind is not None:
                worker.kill()  # what it is at is not wanted any more
            with suppress(OSError):  # it has gone before
                _pipe(worker.stdin).close()
        if self._workers:
            self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.wait()
            _pipe(worker.stdout).close()

    def encoded(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """Encode tasks side by side.

        Args:
            tasks: Asked for no faster than they are done.

        Yields:
            For each task, in order, what became of it.

        Raises:
            TokenizerError: if a stretch for training has characters without an id.
            UserError: if a process was killed from outside.
        """
        if not self._workers:
            yield from (encode_task(self._tokenizer, task) for task in tasks)
            return
        waiting: deque[Future[Answer]] = deque()
        for task in tasks:
            waiting.append(self._threads.submit(self._one, task))
            if len(waiting) >= WAITING * self.processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _begin(self, worker: subprocess.Popen[bytes]) -> None:
        """Tell a worker what to encode with; if it is gone already, its first task will show it."""
        with suppress(UserError):
            self._to(worker, (self._tokenizer.definition, self._tokenizer.end_of_text))
        self._idle.put(worker)

    def _one(self, task: Task) -> Answer:
        """Have a worker do a task, and wait for it."""
        worker = self._idle.get()
        try:
            self._to(worker, task)
            answer = receive(_pipe(worker.stdout), Answer | Refused)
        except EOFError as error:
            raise self._killed() from error
        finally:
            self._idle.put(worker)
        if isinstance(answer, list):
            expected, came, remedy = answer
            raise TokenizerError(expected, came=came, remedy=remedy)
        return answer

    def _to(self, worker: subprocess.Popen[bytes], message: object) -> None:
        try:
            send(_pipe(worker.stdin), message)
        except (BrokenPipeError, ValueError) as error:  # it is gone; or the pool is being closed
            raise self._killed() from error

    def _killed(self) -> UserError:
        return UserError(
            f"{self.processes} processes that encode text",
            came="one that was killed from outside, perhaps for want of memory",
            remedy="run the same command again, with fewer --processes if memory is short",
        )


def _pipe(stream: object) -> BinaryIO:
    return cast(BinaryIO, stream)
