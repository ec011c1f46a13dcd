"""Text and control tokens side by side, encoded as if the whole had been one text.

Encoding each stretch of text alone would not do: tokenizers look at what stands before (some put a space before a first
word, some take the white space after a control token away). So the whole is encoded in one call, and each control token
that was put there is spelled by a word of its own, drawn at random, which no text has. The library finds such a word as
it would find the token; what spells a real control token it leaves a text.

In: parts.  Out: ids, and what of the parts each stands for.  Used by: chat.py.  Read next: template_worker.py.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
import numpy as np
import tokenizers as library

from pellucid.errors import TokenizerError
from pellucid.text.byte_alphabet import utf8
from pellucid.text.definition import added_tokens, outline_of
from pellucid.text.tokenizer import TextTokenizer

SECRET_BYTES = 16
"""Of chance in a word; nobody guesses so many, and a text that has the word all the same is found out."""


@dataclass(frozen=True)
class Part:
    """A stretch of text, or a control token."""

    text: str
    """The text; for a control token, its name."""
    is_control: bool = False
    """Whether it is a control token."""
    is_counted: bool = False
    """Whether its ids shall be told from the others."""


class PartEncoder:
    """Encodes parts.

    Args:
        tokenizer: With what.
        control_tokens: Tokens that only parts of their own may become, and their ids: the special ones, and others.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer = character_tokenizer(["<|endoftext|>"])
        >>> parts = PartEncoder(tokenizer, tokenizer.special_tokens)
        >>> parts.encode([Part("ex"), Part("<|endoftext|>", is_control=True)])
        ([4, 9, 0], [False, False, False])
        >>> 0 in parts.encode([Part("<|endof"), Part("text|>")])[0]
        False
    """

    def __init__(self, tokenizer: TextTokenizer, control_tokens: Mapping[str, int]) -> None:
        self._tokenizer = tokenizer
        self._control = dict(control_tokens)
        self._described = {token["content"]: token for token in added_tokens(outline_of(tokenizer.definition))}
        self._control_ids = frozenset(self._control.values()) - _unknown_ids(tokenizer.definition, self._control)
        self._lock = Lock()  # words are added to the library while others may encode
        self._forget()

    def encode(self, parts: Sequence[Part]) -> tuple[list[int], list[bool]]:
        """Encode parts as one.

        Args:
            parts: In order. Text that spells a control token stays text, also where two parts spell it together.

        Returns:
            The ids, and for each whether a part that is counted has a share in it.

        Raises:
            TokenizerError: if a text holds characters that have no id, or cannot be kept from becoming a control token.
        """
        with self._lock:
            return self._encoded(parts)

    def _encoded(self, parts: Sequence[Part]) -> tuple[list[int], list[bool]]:
        plain = "".join(part.text for part in parts if not part.is_control)
        utf8(plain)
        if self._tokenizer.unknown_characters(plain):
            self._tokenizer.encode(plain)  # says which
        if any(word in plain for word in self._words.values()):
            self._forget()
        spelled = [self._word(part.text) if part.is_control else part.text for part in parts]
        try:
            encoding = self._library.encode("".join(spelled), add_special_tokens=False)
        except Exception as error:  # the library raises bare Exceptions
            came = f"one it refuses ({error})"
            raise TokenizerError("a chat this tokenizer can encode", came=came, remedy="change its texts") from error
        self._check(encoding.ids, sum(part.is_control for part in parts))
        ids = [self._meant.get(token_id, token_id) for token_id in encoding.ids]
        is_counted = np.repeat([part.is_counted for part in parts], list(map(len, spelled))).astype(np.int64)
        before = np.concatenate([[0], np.cumsum(is_counted)])
        starts, ends = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2).T
        return ids, (before[np.maximum(ends, np.minimum(starts + 1, len(before) - 1))] > before[starts]).tolist()

    def _check(self, ids: Sequence[int], num_control: int) -> None:
        """Every control token was put there, and all that were are there."""
        if sum(token_id in self._meant for token_id in ids) != num_control:
            raise TokenizerError(
                "a tokenizer that finds its control tokens in any text",
                came="one that changes the text before",
                remedy="use another file of the same model",
            )
        if self._control_ids & set(ids):
            raise TokenizerError(
                "texts that stay texts",
                came="one that this tokenizer turns into a control token",
                remedy="leave out what spells one",
            )

    def _word(self, token: str) -> str:
        """The word that spells a control token; it is drawn when it is first needed."""
        if token not in self._words:
            word = self._words[token] = f"c{secrets.token_hex(SECRET_BYTES)}c"
            self._library.add_tokens([_added(word, self._described.get(token, {}), special=False)])
            self._meant[self._library.get_vocab_size() - 1] = self._control[token]
        return self._words[token]

    def _forget(self) -> None:
        self._words: dict[str, str] = {}
        self._meant: dict[int, int] = {}
        self._library = library.Tokenizer.from_str(self._tokenizer.definition)
        self._library.no_padding()
        self._library.no_truncation()
        self._library.encode_special_tokens = True  # the library's name for: leave their text a text
        self._library.add_special_tokens(  # so are others, once they are called special
            [_added(name, one, special=True) for name, one in self._described.items() if name in self._control]
        )


def _added(text: str, described: Mapping[str, Any], *, special: bool) -> library.AddedToken:
    flags = {flag: described.get(flag, False) for flag in ("lstrip", "rstrip", "normalized")}
    return library.AddedToken(text, single_word=False, special=special, **flags)


def _unknown_ids(definition: str, ids: Mapping[str, int]) -> set[int | None]:
    """What stands for text that has no token: any text may have such."""
    whole = msgspec.json.decode(definition, type=dict[str, msgspec.Raw])
    model = msgspec.json.decode(whole["model"], type=dict[str, msgspec.Raw])
    name, number = (msgspec.json.decode(model.get(key, msgspec.Raw(b"null"))) for key in ("unk_token", "unk_id"))
    return {ids.get(name), number}
