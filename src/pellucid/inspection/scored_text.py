"""A text and a model → what every token, every document and all of it together cost, in units that compare.

    loss            nats per token                what training lowers; says something only beside the same tokenizer
    perplexity      e to the loss                 the same, as a number of tokens to choose among
    bits per byte   and bits per character        comparable whatever the tokens: every character is in the denominator

A character that the tokenizer cannot write is left out of the ids and costs the stated price of an escape instead
(data/prepare.py); so no tokenizer looks better for what it leaves out. Each document is read from an end-of-text token
on, without those before it, and is not asked whether it ends.

In: a model, its tokenizer, `Sources` or held-out pieces.  Out: `ScoredDocument`, `TextScore`, `Parts`.
Used by: the command line, answers.py, passages.py.  Read next: answers.py.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.data import HeldOutPiece, Sources
from pellucid.inspection.surprise import Progress, surprises
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer

READ_TOGETHER = 1 << 16  # tokens: short documents are read side by side
FEWEST_PARTS = 10  # with fewer documents than this, an error over documents says nothing: passages are taken instead
SMALLEST_PART = 100  # characters; shorter passages are words, not samples of a text


@dataclass(frozen=True, kw_only=True)
class TextScore:
    """What a text cost, beside its sizes.

    Attributes:
        name: Of the document.
        characters: All of them.
        utf8_bytes: Of the same, in UTF-8.
        tokens: How many were scored.
        nats: Their surprise in all.
        escaped: Characters that the tokenizer cannot write, and that no token stands for.
        escape_bits: What each of them costs.
    """

    name: str
    characters: int
    utf8_bytes: int
    tokens: int
    nats: float
    escaped: int = 0
    escape_bits: float = 0.0

    @property
    def bits(self) -> float:
        """All of it, escapes included."""
        return self.nats / math.log(2) + self.escaped * self.escape_bits

    @property
    def bits_per_character(self) -> float:
        """Comparable between models of the same script."""
        return self.bits / self.characters

    @property
    def bits_per_byte(self) -> float:
        """Comparable between scripts, too."""
        return self.bits / self.utf8_bytes

    @property
    def loss(self) -> float | None:
        """Nats per token; None if no character could be written."""
        return self.nats / self.tokens if self.tokens else None

    @property
    def perplexity(self) -> float | None:
        """Among how many equally likely tokens the model chooses."""
        return None if self.loss is None else math.exp(min(self.loss, 700.0))  # e^710 is no number any more

    @classmethod
    def of_all(cls, scores: Sequence["TextScore"]) -> "TextScore":
        """All documents as one text: every token counts the same.

        Example:
            >>> one = TextScore(name="a", characters=2, utf8_bytes=2, tokens=2, nats=2.0)
            >>> two = TextScore(name="b", characters=6, utf8_bytes=6, tokens=2, nats=6.0)
            >>> TextScore.of_all([one, two]).loss
            2.0
        """
        return cls(
            name="together",
            characters=sum(score.characters for score in scores),
            utf8_bytes=sum(score.utf8_bytes for score in scores),
            tokens=sum(score.tokens for score in scores),
            nats=math.fsum(score.nats for score in scores),
            escaped=sum(score.escaped for score in scores),
            escape_bits=scores[0].escape_bits if scores else 0.0,
        )


@dataclass(frozen=True)
class ScoredDocument:
    """A document, token by token.

    Attributes:
        score: Its sums.
        ids: Its tokens, after the end-of-text token that it begins with.
        nats: The surprise of each but that one.
        starts: The character in which each of these begins, counted in the document.
        escaped: Places of the characters that no token stands for.
        missing: These characters, where they are known.
    """

    score: TextScore
    ids: np.ndarray
    nats: np.ndarray
    starts: np.ndarray
    escaped: np.ndarray
    missing: str


@dataclass(frozen=True)
class Parts:
    """A text in parts of which each is a sample of it, so that a figure has an error: documents, if there are ten.

    Attributes:
        kind: "documents"; or "passages", ten of equal length from fewer documents; "none" from a short text.
        ends: For each part, the place after its last character, counted over all documents.
    """

    kind: str
    ends: np.ndarray

    @classmethod
    def of(cls, characters: Sequence[int]) -> "Parts":
        """The parts of documents of these lengths.

        Example:
            >>> Parts.of([600, 500]).ends.tolist()
            [110, 220, 330, 440, 550, 660, 770, 880, 990, 1100]
        """
        total = int(np.sum(characters))
        if len(characters) >= FEWEST_PARTS:
            return cls("documents", np.cumsum(characters))
        if total >= FEWEST_PARTS * SMALLEST_PART:
            return cls("passages", np.arange(1, FEWEST_PARTS + 1) * total // FEWEST_PARTS)
        return cls("none", np.array([total]))

    @property
    def characters(self) -> tuple[int, ...]:
        """The length of each part."""
        return tuple(np.diff(self.ends, prepend=0).tolist())

    def bits(self, documents: Iterable[ScoredDocument]) -> tuple[float, ...]:
        """What each part cost; a token belongs to the part in which it begins."""
        bits, offset = np.zeros(len(self.ends)), 0
        for document in documents:
            places = np.searchsorted(self.ends, offset + document.starts, side="right")
            bits += np.bincount(places, weights=document.nats / math.log(2), minlength=len(bits))
            places = np.searchsorted(self.ends, offset + document.escaped, side="right")
            bits += np.bincount(places, minlength=len(bits)) * document.score.escape_bits
            offset += document.score.characters
        return tuple(bits.tolist())

    def texts(self, sources: Sources, *, most_characters: int | None = None) -> list[str]:
        """The text of each part, or of long ones the beginning, for whoever else is to be measured on it."""
        texts: list[list[str]] = [[] for _ in self.ends]
        place = 0
        for piece in sources.pieces():
            start = 0
            while start < len(piece.text):
                part = int(np.searchsorted(self.ends, place, side="right"))
                stop = min(len(piece.text), start + int(self.ends[part]) - place)
                room = stop if most_characters is None else max(0, most_characters - sum(map(len, texts[part])))
                texts[part].append(piece.text[start : min(stop, start + room)])
                place, start = place + stop - start, stop
        return ["".join(pieces) for pieces in texts]


def score_documents(
    model: TransformerLM,
    tokenizer: TextTokenizer,
    sources: Sources,
    *,
    escape_bits: float,
    stride: int | None = None,
    on_progress: Progress | None = None,
) -> Iterator[ScoredDocument]:
    """Score the documents of a text one after another, whole; short ones are read side by side.

    Args:
        model: The model.
        tokenizer: Its own.
        sources: The text.
        escape_bits: What a character costs that the tokenizer cannot write.
        stride: As for `surprises`.
        on_progress: Hears how many characters are done.

    Yields:
        Each document.

    Raises:
        ConfigError: for a stride that cannot be.
        DataError: if the tokenizer is not the model's, or the text changes while it is read.
    """
    alphabet = _CharactersBegun(tokenizer)
    number = done = 0
    for group in _together(map(alphabet.encode, _texts(sources))):
        tell = None if on_progress is None else _in_characters(on_progress, done, group)
        found = surprises(model, [encoded.ids for encoded in group], stride=stride, on_progress=tell)
        for encoded, nats in zip(group, found, strict=True):
            facts = sources.documents[number]
            score = TextScore(
                name=facts.name,
                characters=facts.characters,
                utf8_bytes=facts.utf8_bytes,
                tokens=len(nats),
                nats=float(nats.sum(dtype=np.float64)),
                escaped=len(encoded.escaped),
                escape_bits=escape_bits,
            )
            yield ScoredDocument(score, encoded.ids[1:], nats, encoded.starts, encoded.escaped, encoded.missing)
            number, done = number + 1, done + facts.characters


def score_passages(
    model: TransformerLM,
    tokenizer: TextTokenizer,
    passages: Sequence[HeldOutPiece],
    *,
    escape_bits: float,
    stride: int | None = None,
    on_progress: Progress | None = None,
) -> list[ScoredDocument]:
    """Score the held-out passages of a run; with a stride of the context this is the figure of its training.

    What stands for an end of text inside a passage is not scored, as no yardstick is asked for it either.

    Args:
        model: The model.
        tokenizer: Its own.
        passages: Of the prepared text.
        escape_bits: What a character costs that the tokenizer cannot write.
        stride: As for `surprises`.
        on_progress: Hears how many tokens are done.

    Returns:
        Each passage. Which characters were left out of it is not known; their bytes are taken to be as many as others'.
    """
    found = surprises(model, [piece.tokens for piece in passages], stride=stride, on_progress=on_progress)
    alphabet = _CharactersBegun(tokenizer)
    scored = []
    for number, (piece, nats) in enumerate(zip(passages, found, strict=True), 1):
        ids = piece.tokens[1:]
        asked = ids != tokenizer.end_of_text_id
        written = max(1, piece.characters - piece.escaped)
        score = TextScore(
            name=f"held-out passage {number}",
            characters=piece.characters,
            utf8_bytes=round(alphabet.utf8_bytes(ids) * piece.characters / written),
            tokens=int(asked.sum()),
            nats=float(nats[asked].sum(dtype=np.float64)),
            escaped=piece.escaped,
            escape_bits=escape_bits,
        )
        scored.append(ScoredDocument(score, ids, np.where(asked, nats, 0.0), alphabet.starts(ids), ids[:0], ""))
    return scored


@dataclass(frozen=True)
class _Encoded:
    ids: np.ndarray
    starts: np.ndarray
    escaped: np.ndarray
    missing: str
    characters: int


class _CharactersBegun:
    """Which character of a text each of its tokens begins in: a token may be several characters, or a part of one."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        tokens = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
        self._begun = np.array([sum(byte & 0xC0 != 0x80 for byte in token) for token in tokens])
        self._inside = np.array([bool(token) and token[0] & 0xC0 == 0x80 for token in tokens])
        self._bytes = np.array(list(map(len, tokens)))

    def encode(self, texts: Sequence[str]) -> _Encoded:
        """A document that comes in pieces, as ids that begin with what its tokenizer begins a text with."""
        written, escaped, kept_places, missing = [], [], [], ""
        place = 0
        for text in texts:
            unknown = self._tokenizer.unknown_characters(text)
            is_escaped = np.isin(_code_points(text), _code_points(unknown))
            written.append(text.translate(dict.fromkeys(map(ord, unknown))) if unknown else text)
            escaped.append(place + np.flatnonzero(is_escaped))
            kept_places.append(place + np.flatnonzero(~is_escaped))
            missing += "".join(text[one] for one in np.flatnonzero(is_escaped))
            place += len(text)
        ids = np.concatenate([[self._tokenizer.start_id], *self._tokenizer.encode_batch(written)])
        kept = np.concatenate(kept_places)
        starts = kept[np.minimum(self.starts(ids[1:]), len(kept) - 1)] if len(kept) else kept
        return _Encoded(ids.astype(np.int32), starts, np.concatenate(escaped), missing, place)

    def starts(self, ids: np.ndarray) -> np.ndarray:
        """The number of the character that each token begins in, among those that the tokens write."""
        begun = self._begun[ids]
        return np.maximum(np.cumsum(begun) - begun - self._inside[ids], 0)

    def utf8_bytes(self, ids: np.ndarray) -> int:
        """How many bytes the tokens write."""
        return int(self._bytes[ids].sum())


def _texts(sources: Sources) -> Iterator[list[str]]:
    """The pieces of each document."""
    texts: list[str] = []
    for piece in sources.pieces():
        if piece.opens and texts:
            yield texts
            texts = []
        texts.append(piece.text)
    yield texts


def _together(stream: Iterator[_Encoded]) -> Iterator[list[_Encoded]]:
    """Documents in groups large enough that windows of several fill a batch."""
    group: list[_Encoded] = []
    for encoded in stream:
        group.append(encoded)
        if sum(len(one.ids) for one in group) >= READ_TOGETHER:
            yield group
            group = []
    if group:
        yield group


def _in_characters(on_progress: Progress, done: int, group: Sequence[_Encoded]) -> Progress:
    """Tokens done within a group, told as characters done in all."""
    tokens = max(1, sum(len(encoded.ids) - 1 for encoded in group))
    characters = sum(encoded.characters for encoded in group)
    return lambda scored: on_progress(done + scored * characters // tokens)


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
