"""What every tokenizer does here, and the one class that does it.

However a tokenizer comes to be (characters of a text, byte pairs learned from it, somebody else's `tokenizer.json`), it
is a `tokenizer.json`, and `TextTokenizer` wraps it. Text is data: a text that spells a special token stays text unless
the caller allows it, nothing is added at its ends, nothing is cut off.

In: texts, ids, files.  Out: ids, texts, files.  Used by: data, generate, convert, load, the command line.
Read next: characters.py.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Protocol, SupportsIndex, runtime_checkable

import numpy as np
import tokenizers as library
from jaxtyping import Int64

from pellucid.errors import TokenizerError
from pellucid.text.byte_alphabet import utf8
from pellucid.text.character_names import named
from pellucid.text.character_table import UNKNOWN, CharacterTable, code_points
from pellucid.text.definition import (
    KNOWN_ENDS,
    Kind,
    added_tokens,
    bytes_of_tokens,
    find_end_of_text,
    fingerprint_of,
    is_surrogate,
    kind_of,
    may_be_cut,
    missing_bytes,
    outline_of,
)
from pellucid.text.splitting import cut_between_words, special_finder

Ids = Int64[np.ndarray, " position"]

_PIECE = 32_768
"""Characters of a long text that are encoded as one: small enough to share between threads."""

_TOGETHER = 1_048_576
"""Characters encoded in one call. The library keeps some 150 bytes a token until the call returns."""


@runtime_checkable
class Tokenizer(Protocol):
    """What the other rooms ask of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Ids are 0 to vocab_size - 1."""

    @property
    def end_of_text_id(self) -> int:
        """The id that ends a document and begins an empty prompt."""

    @property
    def kind(self) -> Kind:
        """Whether tokens are characters, merged bytes, or something else."""

    @property
    def fingerprint(self) -> str:
        """A sha256 that two tokenizers share only if they are the same."""

    def encode(self, text: str, *, allow_special: bool = False) -> Ids:
        """Turn a text into ids."""

    def encode_batch(self, texts: Sequence[str]) -> list[Ids]:
        """Turn several texts into ids, on all threads."""

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Turn ids into text."""

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """Give the bytes an id stands for; none for a special token."""

    def unknown_characters(self, text: str) -> str:
        """Give the characters of a text that have no id."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the tokenizer to a file."""


class TextTokenizer:
    """A tokenizer read from the text of a `tokenizer.json`.

    Args:
        definition: The text of the file. It is kept, and saved again to the letter.
        end_of_text: The name of the end-of-text token. Default: the first of `KNOWN_ENDS` that is there.
        configured_end: The name tried after those: what a tokenizer_config.json calls the end of a sequence.

    Raises:
        TokenizerError: if the definition cannot be read or has no end-of-text token.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer = character_tokenizer(["to be or not to be"])
        >>> tokenizer.encode("to be")
        array([7, 5, 1, 2, 3])
        >>> tokenizer.decode([7, 5])
        'to'
    """

    configured_beginning: str | None = None
    """What a tokenizer_config.json calls the beginning of a sequence; `load_tokenizer` reads it."""

    def __init__(self, definition: str, *, end_of_text: str | None = None, configured_end: str | None = None) -> None:
        self._text, self.configured_end = definition, configured_end
        self._library = _parse(definition)
        self._library.encode_special_tokens = True  # the library's name for: leave their text a text
        self._definition = outline_of(definition)
        self._ids = self._library.get_vocab(with_added_tokens=True)
        self.vocab_size: int = max(self._ids.values(), default=-1) + 1
        self.kind: Kind = kind_of(self._definition)
        self.special_tokens: dict[str, int] = {
            token["content"]: token["id"] for token in added_tokens(self._definition) if token["special"]
        }
        found = find_end_of_text(self.special_tokens, end_of_text, configured_end)  # Gemma has HTML's </s> as a word
        found = found or find_end_of_text(self._ids, end_of_text, configured_end)
        self.end_of_text = _require_end_of_text(found, end_of_text)
        self.end_of_text_id: int = self._ids[self.end_of_text]
        self._special_finder = special_finder(self.special_tokens)
        self._may_be_cut = may_be_cut(self._definition)

    def __repr__(self) -> str:
        return f"TextTokenizer({self.kind}, vocab_size={self.vocab_size}, fingerprint={self.fingerprint[:12]}…)"

    def encode(self, text: str, *, allow_special: bool = False) -> Ids:
        """Turn a text into ids.

        Args:
            text: The text. Nothing is added to it, and nothing in it is normalised by a tokenizer made here.
            allow_special: Whether text that spells a special token becomes that token. Never for text by users.

        Returns:
            One id a token, int64.

        Raises:
            TokenizerError: if the text holds characters that have no id; they are listed.
        """
        return self.encode_batch([text], allow_special=allow_special)[0]

    def encode_batch(self, texts: Sequence[str], *, allow_special: bool = False) -> list[Ids]:
        """Turn several texts into ids, on the library's threads.

        Args:
            texts: The texts. A long one is shared between threads, too.
            allow_special: As for `encode`.

        Returns:
            The ids of each text, each as `encode` gives them.

        Raises:
            TokenizerError: if a text holds characters that have no id; they are listed.
        """
        if self._character_table is not None:
            return [self._encode_characters(text, allow_special) for text in texts]
        encoder = self._library_with_specials if allow_special else self._library
        ids: list[list[Ids]] = [[] for _ in texts]
        for numbers, pieces in self._gathered(texts, may_cut=self._may_be_cut and not allow_special):
            for number, encoding in zip(numbers, self._encode_pieces(encoder, pieces), strict=True):
                ids[number].append(np.array(encoding.ids, dtype=np.int64))
        return [parts[0] if len(parts) == 1 else np.concatenate([*parts, np.zeros(0, dtype=np.int64)]) for parts in ids]

    def decode(self, ids: Iterable[SupportsIndex], *, show_special: bool = False) -> str:
        """Turn ids into text.

        Args:
            ids: Ids, in a list, an array or a tensor.
            show_special: Whether special tokens appear as their names; else they say nothing.

        Returns:
            The text; bytes that are no character become U+FFFD.

        Raises:
            TokenizerError: if an id is outside the vocabulary.
        """
        array = np.asarray(ids if hasattr(ids, "__len__") else list(ids), dtype=np.int64).reshape(-1)
        outside = array[(array < 0) | (array >= self.vocab_size)]
        if outside.size:
            raise self._outside(int(outside[0]))
        if self.kind == "other":
            return self._library.decode(array.tolist(), skip_special_tokens=not show_special)
        table = self._shown_bytes if show_special else self._token_bytes
        return b"".join([table[token_id] for token_id in array.tolist()]).decode("utf-8", "replace")

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """Give the bytes an id stands for, often half a character; none for a special token.

        Joined over ids they are the UTF-8 of `decode`, save that other people's tokenizers may trim a first space.

        Raises:
            TokenizerError: if the id is outside the vocabulary.
        """
        place = index(token_id)
        if not 0 <= place < self.vocab_size:
            raise self._outside(place)
        return self._token_bytes[place]

    def unknown_characters(self, text: str) -> str:
        """Give the characters of a text that have no id, each once, in the order they come.

        Example:
            >>> from pellucid.text import character_tokenizer
            >>> character_tokenizer(["abc"]).unknown_characters("d?ad")
            'd?'
        """
        if self._character_table is None:
            missing = self._missing_bytes  # the library drops them without a word
            return "".join(one for one in dict.fromkeys(text) if is_surrogate(one) or missing & {*one.encode("utf-8")})
        missing = code_points(text)[self._character_table.encode(text) == UNKNOWN]
        return "".join(map(chr, dict.fromkeys(missing.tolist())))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the tokenizer to a file, whole or not at all, in UTF-8 on every platform.

        Args:
            path: The file, or a folder that gets a `tokenizer.json`.

        Returns:
            The file written.
        """
        path = Path(path)
        path = path / "tokenizer.json" if path.is_dir() else path
        _write_whole(path, self._text)
        if self.end_of_text not in KNOWN_ENDS:  # then the file alone does not tell which token ends a text
            config = path.with_name("tokenizer_config.json")
            if not config.exists():
                _write_whole(config, json.dumps({"eos_token": self.end_of_text}, ensure_ascii=False))
        return path

    @property
    def definition(self) -> str:
        """The text of its `tokenizer.json`."""
        return self._text

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 that two tokenizers share only if they are the same."""
        return fingerprint_of(json.loads(self._text))

    @cached_property
    def beginning_ids(self) -> list[int]:
        """What the tokenizer itself says to put before every text, mostly one id (BOS); nothing for one made here."""
        if not self._library.num_special_tokens_to_add(is_pair=False):
            return []
        whole, bare = (self._library.encode("a", add_special_tokens=marked).ids for marked in (True, False))
        return next((whole[:n] for n in range(len(whole)) if whole[n : n + len(bare)] == bare), [])

    @property
    def start_id(self) -> int:
        """What stands before a text's first token: the last of `beginning_ids`, or else the end of another text."""
        return self.beginning_ids[-1] if self.beginning_ids else self.end_of_text_id

    @cached_property
    def _character_table(self) -> CharacterTable | None:
        if self.kind != "characters":
            return None
        return CharacterTable({token: token_id for token, token_id in self._ids.items() if len(token) == 1})

    @cached_property
    def _missing_bytes(self) -> frozenset[int]:
        return missing_bytes(self._token_bytes) if self.kind == "bpe" else frozenset()

    @cached_property
    def _library_with_specials(self) -> library.Tokenizer:
        return _parse(self._text)  # an object of its own: the switch on a shared one would be seen by other threads

    @cached_property
    def _token_bytes(self) -> list[bytes]:
        return bytes_of_tokens(self._definition, self._ids)

    @cached_property
    def _shown_bytes(self) -> list[bytes]:
        table = list(self._token_bytes)
        for token, token_id in self.special_tokens.items():
            table[token_id] = token.encode("utf-8")
        return table

    def _encode_characters(self, text: str, allow_special: bool) -> Ids:
        parts, start = [], 0
        for special in self._special_finder.finditer(text) if allow_special else ():
            parts += [self._look_up(text[start : special.start()]), [self.special_tokens[special.group()]]]
            start = special.end()
        return np.concatenate([*parts, self._look_up(text[start:])]).astype(np.int64, copy=False)

    def _look_up(self, text: str) -> Ids:
        assert self._character_table is not None
        ids = self._character_table.encode(text)
        if UNKNOWN in ids:
            raise TokenizerError(
                f"text made of the {self.vocab_size - len(self.special_tokens)} characters this tokenizer knows",
                came=f"the unknown {named(self.unknown_characters(text))}",
                remedy="leave them out, or train on text that has them",
            )
        return ids

    def _gathered(self, texts: Sequence[str], *, may_cut: bool) -> Iterator[tuple[list[int], list[str]]]:
        """Gather pieces of texts, with the number of the text they belong to, into calls of a bounded size."""
        numbers: list[int] = []
        pieces: list[str] = []
        size = 0
        for number, text in enumerate(texts):
            for piece in cut_between_words(text, _PIECE) if may_cut else (text,):
                numbers.append(number)
                pieces.append(piece)
                size += len(piece)
                if size >= _TOGETHER:
                    yield numbers, pieces
                    numbers, pieces, size = [], [], 0
        if pieces:
            yield numbers, pieces

    def _encode_pieces(self, encoder: library.Tokenizer, pieces: list[str]) -> list[library.Encoding]:
        try:
            return encoder.encode_batch_fast(pieces, add_special_tokens=False)
        except TypeError:
            for piece in pieces:
                utf8(piece)  # the one mistake behind it that has a sentence
            raise
        except Exception as error:  # the library raises bare Exceptions
            raise TokenizerError(
                "text this tokenizer can encode",
                came=f"text it refuses ({error})",
                remedy="leave the unknown characters out, or choose another tokenizer",
            ) from error

    def _outside(self, token_id: int) -> TokenizerError:
        return TokenizerError(
            f"token ids from 0 to {self.vocab_size - 1}",
            came=f"id {token_id}",
            remedy="use the tokenizer that was saved with the model",
        )


def load_tokenizer(path: str | os.PathLike[str], *, end_of_text: str | None = None) -> TextTokenizer:
    """Read a tokenizer from a `tokenizer.json`, or from a folder that has one.

    Args:
        path: The file or folder.
        end_of_text: The name of the end-of-text token, for a tokenizer that does not tell.

    Raises:
        TokenizerError: if there is no such file, or it is no tokenizer, or it has no end-of-text token.
    """
    path = Path(path)
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        definition = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        others = "a SentencePiece model or vocabulary files, but no tokenizer.json"
        has_others = any((path.parent / name).exists() for name in ("tokenizer.model", "vocab.json", "vocab.txt"))
        raise TokenizerError(
            f"a tokenizer.json at {path}",
            came=others if has_others else "no such file",
            remedy="save the tokenizer as tokenizer.json" if has_others else "give the file, or the folder it is in",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise TokenizerError(
            f"a tokenizer.json in UTF-8 at {path}", came=f"a file that cannot be read ({error})", remedy="check it"
        ) from error
    try:
        end = _configured(path, "eos_token")
        tokenizer = TextTokenizer(definition, end_of_text=end_of_text, configured_end=end)
        tokenizer.configured_beginning = _configured(path, "bos_token")
        return tokenizer
    except TokenizerError as error:
        raise TokenizerError(f"{error.expected} in {path}", came=error.came, remedy=error.remedy) from error


def _parse(definition: str) -> library.Tokenizer:
    try:
        parsed = library.Tokenizer.from_str(definition)
    except Exception as error:  # the library raises bare Exceptions
        raise TokenizerError(
            "the JSON of a tokenizer", came=f"something else ({error})", remedy="give a file named tokenizer.json"
        ) from error
    parsed.no_padding()  # some files pad and cut to the length their first model was trained on
    parsed.no_truncation()
    return parsed


def _configured(path: Path, name: str) -> str | None:
    try:
        configured = json.loads(path.with_name("tokenizer_config.json").read_bytes()).get(name)
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return configured.get("content") if isinstance(configured, dict) else configured


def _require_end_of_text(found: str | None, asked: str | None) -> str:
    if found is None:
        raise TokenizerError(
            "a tokenizer with an end-of-text token",
            came=f"one without {asked!r}" if asked else f"one with none of {', '.join(KNOWN_ENDS)}",
            remedy="name one of its tokens as eos_token in a tokenizer_config.json beside it",
        )
    return found


def _write_whole(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    try:
        unfinished.write_bytes(text.encode("utf-8"))
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
