"""What one process of the pool does: takes texts, gives ids and counts, until nothing comes any more.

Frames go both ways: eight bytes of length, then MessagePack. Nothing in them can run.

In: tasks on standard input.  Out: answers on standard output; `Stretch`, `Answer`, `encode_task`.
Used by: encoding_pool.py.  Read next: encoding_pool.py.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec
import numpy as np

from pellucid.errors import TokenizerError
from pellucid.text.tally import Tally, tally
from pellucid.text.tokenizer import TextTokenizer

LENGTH_BYTES = 8


@dataclass(frozen=True)
class Stretch:
    """A piece of text, and what is wanted of it."""

    text: str
    encoded: int
    """How many of its characters shall become ids, the first ones; all are counted."""
    held_out: bool
    """Whether it is held out: counted apart, and characters without an id are left out instead of refused."""


@dataclass(frozen=True)
class Encoded:
    """What became of a stretch."""

    ids: np.ndarray
    escaped: int
    """How many characters were left out."""


@dataclass(frozen=True)
class Answer:
    """What became of a task."""

    encoded: list[Encoded]
    """Of each stretch."""
    training: Tally
    """Of all that is for training, together."""
    held_out: Tally
    """Of all that is held out."""


Refused = list[str]
"""What a tokenizer refused, as the parts of its sentence."""


def encode_task(tokenizer: TextTokenizer, task: Sequence[Stretch]) -> Answer:
    """Encode and count the stretches of one task.

    Args:
        tokenizer: What to encode with.
        task: Stretches of text.

    Raises:
        TokenizerError: if one for training has characters without an id.
    """
    texts, escaped = [], []
    for stretch in task:
        text = full = stretch.text[: stretch.encoded]
        if stretch.held_out and (unknown := tokenizer.unknown_characters(text)):
            text = text.translate(dict.fromkeys(map(ord, unknown)))
        texts.append(text)
        escaped.append(len(full) - len(text))
    kind = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
    return Answer(
        [
            Encoded(some.astype(kind), missing)
            for some, missing in zip(tokenizer.encode_batch(texts), escaped, strict=True)
        ],
        tally([stretch.text for stretch in task if not stretch.held_out]),
        tally([stretch.text for stretch in task if stretch.held_out]),
    )


def send(stream: BinaryIO, message: Any) -> None:
    """Write one frame."""
    content = msgspec.msgpack.encode(message, enc_hook=_array_to_parts)
    stream.write(len(content).to_bytes(LENGTH_BYTES, "little") + content)
    stream.flush()


def receive(stream: BinaryIO, kind: Any) -> Any:
    """Read one frame.

    Args:
        stream: Where from.
        kind: The type of what is in it.

    Raises:
        EOFError: if the other side has gone.
    """
    length = int.from_bytes(_exactly(stream, LENGTH_BYTES), "little")
    return msgspec.msgpack.decode(_exactly(stream, length), type=kind, dec_hook=_array_of_parts)


def work() -> None:
    """Be a worker: the pool's processes run this and nothing else."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads inside would be as many again as there are processes
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    try:
        definition, end_of_text = receive(incoming, tuple[str, str])
        tokenizer = TextTokenizer(definition, end_of_text=end_of_text)
        while True:
            task = receive(incoming, list[Stretch])
            try:
                send(outgoing, encode_task(tokenizer, task))
            except TokenizerError as error:
                send(outgoing, [error.expected, error.came, error.remedy])
    except (EOFError, BrokenPipeError):  # the pool is closed, or was killed
        os._exit(0)  # without a last word to a closed pipe


def _exactly(stream: BinaryIO, count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError
    return content


def _array_to_parts(array: Any) -> tuple[str, bytes]:
    return array.dtype.str, array.tobytes()


def _array_of_parts(kind: Any, parts: Any) -> np.ndarray:
    return np.frombuffer(parts[1], dtype=parts[0])
