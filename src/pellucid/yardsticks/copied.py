"""The longest passage of a text that stands word for word in another: has the model written, or copied?

Windows of one length are compared by a rolling hash, each found pair is compared letter by letter and lengthened, and
the search goes on with windows one longer than the longest so far. So the other text, of any size, passes by once.

In: a sample, the training text as a stream.  Out: `longest_copied`, `longest_copied_of_each`, `Copied`.
Used by: train, the report.  Read next: the room train.

Source: Karp and Rabin, "Efficient randomized pattern-matching algorithms" (1987), here modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
STRETCH = 1 << 20  # characters compared at a time
SMALLEST_TABLE_BITS = 16


@dataclass(frozen=True)
class Copied:
    """A passage of the sample that the other text has too; `start` is its place in the sample."""

    text: str
    start: int


def longest_copied(sample: str, texts: Iterable[str]) -> Copied:
    """Find the longest passage of a sample that stands in a text as it is, spaces and case included.

    Args:
        sample: What a model wrote.
        texts: The text to look in, in pieces that follow one another.

    Returns:
        The passage; of several the first that the text has.

    Example:
        >>> longest_copied("I say to be or else", ["not to b", "e or not"])
        Copied(text=' to be or ', start=5)
    """
    return longest_copied_of_each([sample], texts)[0]


def longest_copied_of_each(samples: Sequence[str], texts: Iterable[str]) -> list[Copied]:
    """`longest_copied` for several samples, while the text passes by once.

    Args:
        samples: What was written, by a model or by people: real text beside it shows what is usual.
        texts: The text to look in, in pieces that follow one another.

    Returns:
        A passage for each sample.
    """
    wanted = [_Windows(sample) for sample in samples]
    best = [Copied("", 0) for _ in samples]
    for stretch in _stretches(texts, overlap=max(map(len, samples), default=0)):
        searched = _Windows(stretch)
        best = [_longer(windows, searched, so_far) for windows, so_far in zip(wanted, best, strict=True)]
    return best


class _Windows:
    """Hashes of all windows of a text: hash_i = Σ_j code_{i+j} · BASE^j, as differences of a running sum."""

    def __init__(self, text: str) -> None:
        self.text = text
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64) + np.uint64(1)
        powers = np.full(len(text), BASE, dtype=np.uint64)
        powers[:1] = 1
        np.multiply.accumulate(powers, out=powers)
        self._sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(codes * powers, dtype=np.uint64)))
        self._inverse_powers = np.full(len(text), pow(BASE, -1, 1 << 64), dtype=np.uint64)
        self._inverse_powers[:1] = 1
        np.multiply.accumulate(self._inverse_powers, out=self._inverse_powers)

    def hashes(self, length: int) -> np.ndarray:
        count = len(self.text) - length + 1
        return (self._sums[length:] - self._sums[:count]) * self._inverse_powers[:count]


def _longer(wanted: _Windows, searched: _Windows, best: Copied) -> Copied:
    while len(best.text) < min(len(wanted.text), len(searched.text)):
        longer = _first_match(wanted, searched, len(best.text) + 1)
        if longer is None:
            break
        best = longer
    return best


def _first_match(wanted: _Windows, searched: _Windows, length: int) -> Copied | None:
    """Find a window of `wanted` in `searched`, made as long as the two texts agree."""
    sample_hashes = wanted.hashes(length)
    order = np.argsort(sample_hashes)
    ordered = sample_hashes[order]
    text_hashes = searched.hashes(length)
    bits = max(SMALLEST_TABLE_BITS, len(ordered).bit_length() + 4)  # a table at most 1/16 full rules out most places
    shift = np.uint64(64 - bits)
    table = np.zeros(1 << bits, dtype=bool)
    table[ordered >> shift] = True
    (places,) = np.nonzero(table[text_hashes >> shift])
    found = np.minimum(np.searchsorted(ordered, text_hashes[places]), len(ordered) - 1)
    equal = ordered[found] == text_hashes[places]
    for there, here in zip(places[equal].tolist(), order[found[equal]].tolist(), strict=True):
        window = wanted.text[here : here + length]
        if searched.text[there : there + length] == window:  # equal hashes may, very rarely, deceive
            end, other = here + length, there + length
            while end < len(wanted.text) and other < len(searched.text) and wanted.text[end] == searched.text[other]:
                end, other = end + 1, other + 1
            return Copied(wanted.text[here:end], here)
    return None


def _stretches(texts: Iterable[str], *, overlap: int) -> Iterator[str]:
    """Join pieces into long stretches, each beginning with the end of the one before."""
    waiting, length = [], 0
    for text in texts:
        waiting.append(text)
        length += len(text)
        if length >= STRETCH + overlap:
            stretch = "".join(waiting)
            yield stretch
            waiting = [stretch[len(stretch) - overlap :]]
            length = overlap
    if length:
        yield "".join(waiting)
