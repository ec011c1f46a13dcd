"""Sources and a tokenizer → `train.tokens` and `held_out.tokens`, as a stream.

Training text that the tokenizer cannot write is an error. A held-out character that it cannot write (a character
tokenizer learns from the training side alone) is left out of the ids and counted: whoever scores adds the stated price
of an escape for each, so that every held-out character stays in the denominator.

In: `Sources`, a `TextTokenizer`, a folder.
Out: `prepare`, `open_prepared`, `PreparedData`, `HeldOutPiece`, `escape_bits`.
Used by: train, the command line.  Read next: batches.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from pellucid.data.pieces import printable
from pellucid.data.sources import Sources
from pellucid.data.split import TENTHS, Passage, most_held_out, passages
from pellucid.data.survey import CODE_POINTS
from pellucid.data.token_file import TokenFile
from pellucid.data.token_writer import TokenWriter
from pellucid.errors import DataError
from pellucid.text import TextTokenizer

TRAIN_FILE, HELD_OUT_FILE = "train.tokens", "held_out.tokens"
ENCODED_TOGETHER = 1 << 20  # characters: enough for every core, some 200 MB of the library's records
MOST_TOGETHER = 4096  # passages, if they are short
UNICODE_SCALARS = CODE_POINTS - 2048  # code points that can be a character


def escape_bits(characters: int, distinct: int) -> float:
    """Price one held-out character that the training text never had.

    It is the price of saying "a new one" and then which: log2((n + d) / d) + log2(all of Unicode), with Witten and
    Bell's estimate d / (n + d) that after n characters, d of them distinct, a new one comes. Everybody pays it: the
    model, the letters, the n-grams.

    Args:
        characters: Length n of the training text.
        distinct: Its distinct characters d.

    Returns:
        Bits.

    Source: Witten and Bell (1991), method C.

    Example:
        >>> round(escape_bits(1_000_000, 76), 1)
        33.8
    """
    return math.log2((characters + distinct) / distinct) + math.log2(UNICODE_SCALARS)


@dataclass(frozen=True)
class HeldOutPiece:
    """One of the ten held-out passages.

    Attributes:
        tokens: Its ids, beginning with the end-of-text token.
        characters: Its length in characters: the denominator of bits per character.
        escaped: How many of these are not in the ids and cost `PreparedData.escape_bits` each.
        conversations: Of chats, their numbers in `PreparedData.held_out_chats`.
    """

    tokens: np.ndarray
    characters: int
    escaped: int
    conversations: np.ndarray | None = None


@dataclass(frozen=True)
class PreparedData:
    """A text that is ready to train on, or several that are mixed.

    Attributes:
        parts: The training ids of each text.
        held_out: The ten held-out passages; none if everything is for training, and then there is no held-out figure.
        text_fingerprint: Of the sources.
        escape_bits: What an escaped character costs.
        weights: Of several texts, the proportions of their rows; None for as long as they are.
        held_out_chats: Of chats, the file of the held-out conversations; its tenths are the passages.
    """

    parts: tuple[TokenFile, ...]
    held_out: tuple[HeldOutPiece, ...]
    text_fingerprint: str
    escape_bits: float
    weights: tuple[Fraction, ...] | None = None
    held_out_chats: TokenFile | None = None

    @property
    def are_chats(self) -> bool:
        """Whether these are conversations, of which answers alone are learned."""
        return self.train.header.kind == "chats"

    @property
    def train(self) -> TokenFile:
        """The training ids, or those of the first text."""
        return self.parts[0]

    @property
    def training_tokens(self) -> int:
        """How many training ids there are."""
        return sum(map(len, self.parts))

    @property
    def training_documents(self) -> int:
        """How many documents, or parts of one, the training side has."""
        return sum(len(part.documents) for part in self.parts)

    @property
    def training_characters(self) -> int:
        """Length of the training side."""
        return sum(part.header.characters for part in self.parts)

    @property
    def held_out_characters(self) -> int:
        """Length of the held-out side."""
        return sum(piece.characters for piece in self.held_out)

    @property
    def characters_per_token(self) -> float:
        """Training characters that one learned token stands for, on average over the tokens that come."""
        weights = self.weights or [Fraction(len(part)) for part in self.parts]
        each = [part.header.characters / part.num_scored for part in self.parts]
        return sum(float(weight / sum(weights)) * one for weight, one in zip(weights, each, strict=True))


def prepare(
    sources: Sources,
    tokenizer: TextTokenizer,
    folder: Path,
    *,
    most_characters: float = math.inf,
    on_progress: Callable[[float], None] | None = None,
) -> PreparedData:
    """Encode both sides of the split into two token files.

    Of held-out passages of a long text only the first part is kept: see `most_held_out`.

    Args:
        sources: The text.
        tokenizer: Learned on the training side alone, or from elsewhere.
        folder: Where the files go; made if missing.
        most_characters: About how much training text to keep at most, taken evenly from all of it.
        on_progress: Called with the fraction of the text that is done.

    Returns:
        The opened files.

    Raises:
        DataError: if the text is too short or changes while it is read.
        TokenizerError: if the training side has characters that the tokenizer cannot write.
    """
    used = np.zeros(CODE_POINTS, dtype=bool)
    done = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            TokenWriter(folder / TRAIN_FILE, tokenizer, text=sources.fingerprint) as train,
            TokenWriter(folder / HELD_OUT_FILE, tokenizer, text=sources.fingerprint) as held_out,
        ):
            for batch in _together(_kept(sources, most_characters)):
                done += _encode(batch, tokenizer, train, held_out, used)
                if on_progress:
                    on_progress(done / sources.characters)
            train.distinct_characters = held_out.distinct_characters = int(used.sum())
    except OSError as error:
        raise DataError(
            f"to write token files in {printable(str(folder))}",
            came=f"“{error.strerror}”",
            remedy="choose a folder that can be written, on a disk with room",
        ) from error
    return open_prepared(folder, tokenizer)


def open_prepared(folder: Path, tokenizer: TextTokenizer) -> PreparedData:
    """Open the files that `prepare` wrote.

    Args:
        folder: Where they are.
        tokenizer: The one they were written with.

    Returns:
        The opened files.

    Raises:
        DataError: if they are missing or damaged, of another tokenizer, or not of one text.
    """
    train = TokenFile.open(folder / TRAIN_FILE, tokenizer=tokenizer)
    held_out = TokenFile.open(folder / HELD_OUT_FILE, tokenizer=tokenizer)
    if train.header.text != held_out.header.text:
        raise DataError(
            f"{TRAIN_FILE} and {HELD_OUT_FILE} of one text",
            came=f"the texts {train.header.text[:12]} and {held_out.header.text[:12]}",
            remedy="train on the text anew",
        )
    price = escape_bits(train.header.characters, max(1, train.header.distinct_characters))
    if not len(held_out.documents):
        return PreparedData((train,), (), train.header.text, price)
    starts = [*held_out.documents[:, 0].tolist(), len(held_out) - 1]
    pieces = []
    are_chats = train.header.kind == "chats"
    for tenth in range(TENTHS):
        (inside,) = np.nonzero(held_out.documents[:, 3] == tenth)
        if not len(inside) and are_chats:  # there may be fewer than ten
            continue
        if not len(inside):
            raise DataError(
                "ten passages in the held-out split", came=f"none of tenth {tenth + 1}", remedy="train on the text anew"
            )
        tokens = held_out.read(starts[inside[0]], starts[inside[-1] + 1])
        characters, escaped = held_out.documents[inside, 1:3].sum(axis=0).tolist()
        pieces.append(HeldOutPiece(tokens, characters, escaped, inside if are_chats else None))
    chats = held_out if are_chats else None
    return PreparedData((train,), tuple(pieces), train.header.text, price, held_out_chats=chats)


class HeldOutLimit:
    """Of held-out passages of a long text only the first part is scored: says how much of each that comes.

    Args:
        sources: The text.
    """

    def __init__(self, sources: Sources) -> None:
        self._most, self._scored = most_held_out(sources), [0] * TENTHS

    def kept(self, passage: Passage) -> int:
        """How many of the next passage's characters become ids."""
        if passage.side == "training":
            return len(passage.text)
        left = len(passage.text) if self._most is None else self._most - self._scored[passage.tenth]
        kept = min(left, len(passage.text))
        self._scored[passage.tenth] += kept
        return kept


def _kept(sources: Sources, most_characters: float) -> Iterator[Passage]:
    """All passages, or of a long text the beginning of the held-out ones and an even share of the others."""
    share = min(1.0, most_characters / sources.characters)
    limit = HeldOutLimit(sources)
    due, left_out = 1 - share, False
    for passage in passages(sources):
        if passage.side == "held_out":
            if kept := limit.kept(passage):
                yield replace(passage, text=passage.text[:kept])
            continue
        due += share
        if due < 1:
            left_out = True
            continue
        yield replace(passage, opens=passage.opens or left_out)
        due, left_out = due - 1, False


def _together(stream: Iterator[Passage]) -> Iterator[list[Passage]]:
    """Batch passages so that the tokenizer has work for every core."""
    batch: list[Passage] = []
    characters = 0
    for passage in stream:
        batch.append(passage)
        characters += len(passage.text)
        if characters >= ENCODED_TOGETHER or len(batch) >= MOST_TOGETHER:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _encode(
    batch: list[Passage], tokenizer: TextTokenizer, train: TokenWriter, held_out: TokenWriter, used: np.ndarray
) -> int:
    """Encode some passages side by side and append them to their files; returns their characters."""
    texts, escaped = [], []
    for passage in batch:
        text = passage.text
        if passage.side == "training":
            used[np.frombuffer(text.encode("utf-32-le"), dtype="<u4")] = True
        elif unknown := tokenizer.unknown_characters(text):
            text = text.translate(dict.fromkeys(map(ord, unknown)))
        texts.append(text)
        escaped.append(len(passage.text) - len(text))
    for passage, ids, missing in zip(batch, tokenizer.encode_batch(texts), escaped, strict=True):
        writer = train if passage.side == "training" else held_out
        if passage.opens:
            writer.begin_document(tenth=passage.tenth)
        writer.add(ids, characters=len(passage.text), escaped=missing)
    return sum(len(passage.text) for passage in batch)
