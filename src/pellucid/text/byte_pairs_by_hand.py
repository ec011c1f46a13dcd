"""Byte-level BPE written out: how a vocabulary of byte pairs is learned, and how a text is written with it.

Learning starts from single bytes and joins, again and again, the pair of neighbours that occurs most often. Writing a
text repeats those joins in the order they were learned. This is the algorithm for reading, and the tokenizer of the
course's assignment; the `tokenizers` library does the same some ten times faster in byte_pairs.py.

In: texts, or a vocabulary and its merges.  Out: a vocabulary and its merges; ids.  Used by: cs336.py.
Read next: cutting.py.
"""

import heapq
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import index
from typing import SupportsIndex

from pellucid.errors import DataError, TokenizerError
from pellucid.text.byte_alphabet import NUM_BYTES, utf8
from pellucid.text.byte_pairs import require_room_for_bytes
from pellucid.text.splitting import words

Pair = tuple[bytes, bytes]

_READ_CHARACTERS = 1_048_576
_REMEMBERED_WORDS = (
    2_048  # the most frequent words of a language; some 0.4 MB, so that a stream needs no more than 1 MB
)
_LONGEST_REMEMBERED = 32  # characters; longer words rarely come twice


def train_byte_pairs_by_hand(
    source: str | os.PathLike[str] | Iterable[str], vocab_size: int, special_tokens: Sequence[str] = ()
) -> tuple[dict[int, bytes], list[Pair]]:
    """Learn a vocabulary by joining the most frequent pair of neighbouring tokens, over and over.

    Args:
        source: The path of a text file in UTF-8; or texts, in pieces cut anywhere.
        vocab_size: How many tokens there shall be, special tokens and the 256 bytes among them.
        special_tokens: Texts that are one token each. The source is cut at them, and they are not counted.

    Returns:
        vocab: The bytes of each id: special tokens, single bytes, then merges in the order they were learned. It is
            smaller than asked for if the text runs out of pairs.
        merges: The pairs joined, in that order. Of pairs that occur equally often, the lexicographically greatest.

    Raises:
        TokenizerError: if vocab_size has no room for the bytes and special tokens.
        DataError: if the file cannot be read or is not UTF-8.

    Source: Sennrich et al. 2016, algorithm 1, on the words of Radford et al. 2019.

    Example:
        >>> vocab, merges = train_byte_pairs_by_hand(["low low lower"], 260, ["<|endoftext|>"])
        >>> merges
        [(b'o', b'w'), (b'l', b'ow'), (b' ', b'low')]
    """
    specials = list(dict.fromkeys(special_tokens))
    require_room_for_bytes(vocab_size, specials)
    pieces = _pieces_of_file(source) if isinstance(source, str | os.PathLike) else source
    counts = Counter(words(pieces, specials))
    for special in specials:
        del counts[special]
    tokens = [utf8(special) for special in specials] + [bytes([byte]) for byte in range(NUM_BYTES)]
    merges = _learn_merges(counts, vocab_size - len(tokens))
    tokens += [left + right for left, right in merges]
    return dict(enumerate(tokens)), merges


def _learn_merges(word_counts: Mapping[str, int], num_merges: int) -> list[Pair]:
    spellings = [[bytes([byte]) for byte in utf8(word)] for word in word_counts]
    counts = list(word_counts.values())
    pair_counts: Counter[Pair] = Counter()
    words_with: defaultdict[Pair, set[int]] = defaultdict(set)  # and some that had the pair once
    for word, tokens in enumerate(spellings):
        for pair in pairwise(tokens):
            pair_counts[pair] += counts[word]
            words_with[pair].add(word)

    merges: list[Pair] = []
    while len(merges) < num_merges and pair_counts:
        most = max(pair_counts.values())
        best = max(pair for pair, count in pair_counts.items() if count == most)
        merges.append(best)
        # Only words that hold the pair change, so only their pairs are counted again.
        for word in words_with.pop(best):
            before, after = spellings[word], _joined(spellings[word], best)
            for pair in pairwise(before):
                pair_counts[pair] -= counts[word]
                if not pair_counts[pair]:
                    del pair_counts[pair]
            for pair in pairwise(after):
                pair_counts[pair] += counts[word]
                words_with[pair].add(word)
            spellings[word] = after
    return merges


def _joined(tokens: list[bytes], pair: Pair) -> list[bytes]:
    """Join every occurrence of a pair, from the left."""
    joined: list[bytes] = []
    position = 0
    while position < len(tokens):
        if tuple(tokens[position : position + 2]) == pair:
            joined.append(pair[0] + pair[1])
            position += 2
        else:
            joined.append(tokens[position])
            position += 1
    return joined


def _pieces_of_file(path: str | os.PathLike[str]) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", newline="") as file:  # newline="": the bytes as they are
            while piece := file.read(_READ_CHARACTERS):
                yield piece
    except UnicodeDecodeError as error:
        raise DataError(
            f"UTF-8 text in {os.fspath(path)}", came=f"other bytes ({error.reason})", remedy="convert the file first"
        ) from None
    except OSError as error:
        raise DataError(
            f"a text file at {os.fspath(path)}",
            came=f"none that can be read ({error.strerror})",
            remedy="give the path of a file, or a list of texts",
        ) from None


def merge_word(word: bytes, ranks: Mapping[Pair, int]) -> list[bytes]:
    """Write a word with the tokens of a vocabulary: join neighbours, the pair learned first before all others.

    The tokens are a chain. Pairs wait in a heap by rank, then by place; joining one changes two neighbours, so a word
    of n bytes takes about n log n steps, however long it is.

    Args:
        word: The bytes of one word.
        ranks: The place of each pair in the order of learning.

    Example:
        >>> merge_word(b"slower", {(b"o", b"w"): 0, (b"e", b"r"): 1, (b"l", b"ow"): 2})
        [b's', b'low', b'er']
    """
    tokens = [bytes([byte]) for byte in word]
    end = len(tokens)
    after, before = list(range(1, end + 1)), list(range(-1, end - 1))
    waiting = [(ranks[pair], place) for place, pair in enumerate(pairwise(tokens)) if pair in ranks]
    heapq.heapify(waiting)
    while waiting:
        rank, place = heapq.heappop(waiting)
        neighbour = after[place]
        if neighbour == end or ranks.get((tokens[place], tokens[neighbour])) != rank:
            continue  # one of the two has been joined to something else since
        tokens[place] += tokens[neighbour]
        tokens[neighbour] = b""
        after[place] = after[neighbour]
        if after[place] != end:
            before[after[place]] = place
        for left in (before[place], place):
            if left >= 0 and after[left] != end:
                pair = (tokens[left], tokens[after[left]])
                if pair in ranks:
                    heapq.heappush(waiting, (ranks[pair], left))
    return [token for token in tokens if token]


class HandTokenizer:
    """A byte-level BPE tokenizer in plain Python, with the interface of the course's assignment.

    Unlike `TextTokenizer` it always takes text that spells a special token for that token.

    Args:
        vocab: The bytes of each id.
        merges: Pairs of tokens in the order they were learned.
        special_tokens: Texts that are one token each, the longest first where they overlap. One whose bytes are not in
            vocab gets the next free id.

    Raises:
        TokenizerError: if a special token is empty.

    Example:
        >>> vocab, merges = train_byte_pairs_by_hand(["low low lower"], 260, ["<|endoftext|>"])
        >>> tokenizer = HandTokenizer(vocab, merges, ["<|endoftext|>"])
        >>> tokenizer.encode("low lower<|endoftext|>"), tokenizer.decode([258, 259])
        ([258, 259, 102, 115, 0], 'low low')
    """

    def __init__(
        self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], special_tokens: list[str] | None = None
    ) -> None:
        self.special_tokens = list(dict.fromkeys(special_tokens or ()))
        self.vocab = dict(vocab)
        for token in map(utf8, self.special_tokens):
            if token not in self.vocab.values():
                self.vocab[max(self.vocab, default=-1) + 1] = token
        self._ids: dict[bytes, int] = {}
        for token_id, token in self.vocab.items():
            self._ids.setdefault(token, token_id)
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._specials = {token: self._ids[utf8(token)] for token in self.special_tokens}
        self._remembered_ids = lru_cache(maxsize=_REMEMBERED_WORDS)(self._word_ids)

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids.

        Raises:
            TokenizerError: if the text holds half a character, or bytes that are not in the vocabulary.
        """
        return list(self.encode_iterable([text]))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """Turn a text that comes in pieces, such as an open file, into ids as it comes.

        The ids are those of the whole text, wherever the pieces are cut, and no more than a piece, a word and the
        `_REMEMBERED_WORDS` most recent words are in memory.

        Args:
            iterable: Pieces of text, asked for one at a time as ids are taken.

        Raises:
            TokenizerError: as for `encode`.
        """
        for word in words(iterable, self.special_tokens):
            if word in self._specials:
                yield self._specials[word]
            elif len(word) <= _LONGEST_REMEMBERED:
                yield from self._remembered_ids(word)
            else:
                yield from self._word_ids(word)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Turn ids into text; bytes that are no character become U+FFFD.

        Raises:
            TokenizerError: if an id is not in the vocabulary.
        """
        try:
            return b"".join([self.vocab[index(token_id)] for token_id in ids]).decode("utf-8", "replace")
        except KeyError as error:
            raise TokenizerError(
                f"ids of the {len(self.vocab)} tokens of the vocabulary",
                came=f"id {error}",
                remedy="use the tokenizer the ids were made with",
            ) from None

    def _word_ids(self, word: str) -> tuple[int, ...]:
        try:
            return tuple([self._ids[token] for token in merge_word(utf8(word), self._ranks)])
        except KeyError as error:
            raise TokenizerError(
                "a vocabulary with every byte and every merge",
                came=f"one without {error}, which {word!r} needs",
                remedy="give the vocabulary that belongs to these merges",
            ) from None
