"""From ids to text while they come: never half a character, never a piece of what should stop the text.

    prompts ─encode─▶ ids ─decode─▶ one id at a time ─TextStream─▶ whole characters ─StopFinder─▶ chunks

Chunks joined are the text: what is streamed and what is given at once is the same, because it is made the same way.
Ids are chosen so that they are text (whole_characters.py). Where max_tokens falls inside a character, its ids are told
and its bytes left out, so that the same seed with more tokens writes the same and goes on from there. With `raw` any id
may come, and bytes that are no character are U+FFFD, wherever they stand.

In: a model, a tokenizer, prompts as text or ids.  Out: chunks of text, `Completion`.
Used by: load, train, the command line.  Read next: ../loading.py.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import index
from typing import Literal, SupportsIndex

import torch
from torch import Tensor

from pellucid.errors import GenerationError, TokenizerError
from pellucid.generate.decode import Choose, check_prompts, decode, fit_prompt
from pellucid.generate.reading import Reading
from pellucid.generate.sampling import new_seed, sample
from pellucid.generate.whole_characters import CharacterStates, WholeCharacters
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import GraphemeStream, TextTokenizer, bytes_begun, states_after_tokens

BROKEN = "\ufffd"
"""What bytes decode to that are no character, or not yet."""

LONGEST_BEGUN = 3
"""Bytes, and so ids, that a character can have begun with and still not be whole."""

WINDOW = 32
"""Ids that are decoded anew with each one that comes; more than any character or accent is cut into."""


Prompt = str | Iterable[SupportsIndex]
"""Text, or ids."""


@dataclass
class Completion:
    """What a model wrote after one prompt, and all that it takes to write it again."""

    prompt: str
    """The text that was gone on from; of ids, their text, control tokens by their names."""
    prompt_ids: list[int]
    """Its ids as they were read; the end-of-text id stands for an empty prompt."""
    num_dropped: int
    """How many ids of a prompt too long for the context were dropped from its beginning."""
    seed: int
    """The same seed, prompt and settings write the same text."""
    token_ids: list[int] = field(default_factory=list)
    """The ids that were written; an end-of-text id that ended them is not among them."""
    text: str = ""
    """Their text, up to a stop text."""
    finish_reason: Literal["stop", "length"] | None = None
    """stop: the model ended the text, or a stop text came; length: max_tokens did. None: not finished."""


class TextStream:
    """The text of ids that come one at a time, as soon as its characters are whole.

    Args:
        tokenizer: Whose ids they are.
        goes_on: Whether text came before them; else a tokenizer that puts a space before every text takes it away.

    Example:
        >>> from pellucid.text import train_byte_pairs
        >>> tokenizer = train_byte_pairs(["a"], 257)
        >>> stream = TextStream(tokenizer)
        >>> [stream.push(token_id) for token_id in tokenizer.encode("aß").tolist()]
        ['a', '', 'ß']
    """

    def __init__(self, tokenizer: TextTokenizer, *, goes_on: bool = False) -> None:
        self._tokenizer = tokenizer
        # The newest ids, decoded together: a tokenizer may join or trim at a beginning. What goes on begins behind a
        # letter, which keeps its first space.
        self._ids: list[int] = _letter(tokenizer) if goes_on else []
        self._told = tokenizer.decode(self._ids)  # what of their text has been given
        self._num_bytes = 0  # how many of the newest ids are bytes whose meaning the next may change

    def push(self, token_id: int) -> str:
        """The text that this id completes; often empty."""
        self._ids.append(token_id)
        goes_on = self._num_bytes > 0 and not self._tokenizer.token_bytes(token_id)  # a special token says nothing
        self._num_bytes = self._num_bytes + 1 if goes_on or token_id in revocable_ids(self._tokenizer) else 0
        text = self._tokenizer.decode(self._ids)
        sure = self._tokenizer.decode(self._ids[: -self._num_bytes]) if self._num_bytes else text.rstrip(BROKEN)
        chunk = sure[len(self._told) :]
        self._told += chunk
        if len(self._ids) > 2 * WINDOW and self._told == text:
            self._forget()
        return chunk

    def finish(self, *, broken: bool = True) -> str:
        """What is left: characters that will never be whole, as U+FFFD, or without one that the end only begins."""
        text = self._tokenizer.decode(self._ids) if broken else whole_text(self._tokenizer, self._ids)
        return text[len(self._told) :]

    def _forget(self) -> None:
        """Keep only the newest ids, if they read the same without those before."""
        tail = self._tokenizer.decode(self._ids[-WINDOW:])
        if tail and self._told.endswith(tail):
            self._ids, self._told = self._ids[-WINDOW:], tail


def _letter(tokenizer: TextTokenizer) -> list[int]:
    """The ids of a letter, for a tokenizer that may treat the beginning of a text in a way of its own."""
    if tokenizer.kind != "other":
        return []
    try:
        return tokenizer.encode("a").tolist()
    except TokenizerError:
        return []


@lru_cache(maxsize=8)
def revocable_ids(tokenizer: TextTokenizer) -> frozenset[int]:
    """Ids of single bytes that become U+FFFD when a later one does not fit: a run of them is judged as a whole.

    So decode SentencePiece tokenizers with byte fallback. Byte-level BPE and characters have none.
    """
    if tokenizer.kind != "other":
        return frozenset()
    single = {token_id: tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)}
    single = {token_id: byte for token_id, byte in single.items() if len(byte) == 1}
    misfit = next((token_id for token_id, byte in single.items() if byte == b"\xff"), None)  # fits nothing in UTF-8
    if misfit is None:
        return frozenset()
    return frozenset(token_id for token_id in single if tokenizer.decode([token_id, misfit]) == 2 * BROKEN)


def whole_characters(tokenizer: TextTokenizer, choose: Choose) -> Choose:
    """A way to choose for one call of `decode` that never breaks a character.

    For tokens that cannot break one it is the same. `generate_naively` takes it as a function of the logits alone.

    Args:
        tokenizer: The model's.
        choose: Chooses, seeing -inf for every id that must not come.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> whole_characters(character_tokenizer(["中文"]), max) is max
        True
    """
    states = character_states(tokenizer)
    return WholeCharacters(states, choose) if states.are_needed else choose


@lru_cache(maxsize=8)
def character_states(tokenizer: TextTokenizer) -> CharacterStates:
    """The states of UTF-8 over a tokenizer's tokens; the end of text comes only between characters."""
    return CharacterStates(states_after_tokens(tokenizer))


def whole_text(tokenizer: TextTokenizer, token_ids: Sequence[int]) -> str:
    """The text of ids, without a character that the last of them only begin.

    Example:
        >>> from pellucid.text import train_byte_pairs
        >>> tokenizer = train_byte_pairs(["a"], 257)
        >>> whole_text(tokenizer, tokenizer.encode("ok😀")[:-1].tolist())
        'ok'
    """
    begun = bytes_begun(b"".join(map(tokenizer.token_bytes, token_ids[-LONGEST_BEGUN:])))
    if begun and tokenizer.kind == "other":  # there a run of single bytes is judged as a whole, so they go before
        return tokenizer.decode(token_ids[: -len(begun)])
    text = tokenizer.decode(token_ids)
    return text.removesuffix(BROKEN) if begun else text


class StopFinder:
    """Text up to the first stop text, however it is cut into chunks; what may be the beginning of one is held back.

    Example:
        >>> finder = StopFinder(["END"])
        >>> [finder.push(chunk) for chunk in ("on E", "or EN", "Dless")], finder.found
        (['on ', 'Eor ', ''], True)
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(stop)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The text that is surely not part of a stop text; nothing more once one has been found."""
        if self.found:
            return ""
        self._held += text
        places = [place for place in map(self._held.find, self._stop) if place >= 0]
        self.found = bool(places)
        end = min(places) if places else len(self._held) - self._length_of_beginning()
        sure, self._held = self._held[:end], "" if self.found else self._held[end:]
        return sure

    def finish(self) -> str:
        """What was held back and turned out to be no stop text."""
        held, self._held = self._held, ""
        return held

    def _length_of_beginning(self) -> int:
        longest = min(len(self._held), max(map(len, self._stop), default=1) - 1)
        ends = (self._held[len(self._held) - length :] for length in range(longest, 0, -1))
        return next((len(end) for end in ends if any(stop.startswith(end) for stop in self._stop)), 0)


class Writing:
    """Texts being written side by side, `config.num_samples` for each prompt; iterating gives chunks as they come.

    Args:
        model: The model.
        tokenizer: Its own.
        prompts: Texts to go on from, an empty one begins a document; or ids, which are read as they are.
        config: How to choose and when to stop.
        end_ids: Ids that end a text beside the tokenizer's end of text, such as the end of a turn.
        reading: What the model has read of the prompts before, and will have read after (see `decode`).

    Raises:
        GenerationError: if a prompt is longer than the context.
        TokenizerError: if a prompt has characters that the tokenizer does not know, naming them.
    """

    def __init__(
        self,
        model: TransformerLM,
        tokenizer: TextTokenizer,
        prompts: Sequence[Prompt],
        config: GenerationConfig,
        end_ids: Collection[int] = (),
        reading: Reading | None = None,
    ) -> None:
        self.model, self.tokenizer, self._reading = model, tokenizer, reading
        self.end_ids = frozenset({tokenizer.end_of_text_id, *end_ids})
        texts_or_ids = [prompt if isinstance(prompt, str) else _whole_numbers(prompt) for prompt in prompts]
        seed = new_seed() if config.seed is None else config.seed
        self.config = replace(config, seed=seed)
        self.completions = [
            Completion(self._text(prompt), *self._read(prompt), seed=(seed + index) % 2**63)
            for prompt in texts_or_ids
            for index in range(config.num_samples)
        ]
        check_prompts(model, [completion.prompt_ids for completion in self.completions])

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Write.

        Yields:
            (number of the completion, its next characters); `completions` is up to date.
        """
        config, completions = self.config, self.completions
        for completion in completions:
            completion.token_ids, completion.text, completion.finish_reason = [], "", None
            if config.max_tokens == 0:
                completion.finish_reason = "length"
        streams = [torch.Generator().manual_seed(completion.seed) for completion in completions]
        texts = [TextStream(self.tokenizer, goes_on=bool(completion.prompt)) for completion in completions]
        finders = [StopFinder(config.stop) for _ in completions]

        def choose(number: int, logits: Tensor) -> int:
            return sample(logits, config, streams[number])

        steps = decode(
            self.model,
            [completion.prompt_ids for completion in completions],
            choose if config.raw else whole_characters(self.tokenizer, choose),
            max_tokens=config.max_tokens,
            has_stopped=lambda number: completions[number].finish_reason is not None,
            reading=self._reading,
        )
        for number, token_id in steps:
            chunk = self._take(completions[number], token_id, texts[number], finders[number])
            completions[number].text += chunk
            if chunk:
                yield number, chunk

    def whole_graphemes(self) -> Iterator[tuple[int, str]]:
        """Write, for the eye: as iterating, but a chunk ends where a grapheme ends, so the last waits for the next."""
        streams = [GraphemeStream() for _ in self.completions]
        for number, chunk in self:
            if whole := streams[number].push(chunk):
                yield number, whole
        for number, stream in enumerate(streams):
            if last := stream.finish():
                yield number, last

    def _take(self, completion: Completion, token_id: int, text: TextStream, finder: StopFinder) -> str:
        """The characters that an id adds to a completion, and whether it ends there."""
        if token_id in self.end_ids:
            completion.finish_reason = "stop"
            return finder.push(text.finish(broken=self.config.raw)) + finder.finish()
        completion.token_ids.append(token_id)
        chunk = finder.push(text.push(token_id))
        if not finder.found and len(completion.token_ids) == self.config.max_tokens:
            completion.finish_reason = "length"
            chunk += finder.push(text.finish(broken=self.config.raw)) + finder.finish()
        if finder.found:
            completion.finish_reason = "stop"
        return chunk

    def _text(self, prompt: str | list[int]) -> str:
        if isinstance(prompt, str):
            return prompt
        return self.tokenizer.decode(prompt, show_special=True)

    def _read(self, prompt: str | list[int]) -> tuple[list[int], int]:
        if not isinstance(prompt, str):
            return fit_prompt(prompt, self.model.config.context_length, self.config.truncate_prompt)
        first = self.tokenizer.beginning_ids  # stays first when the prompt is cut
        token_ids = self.tokenizer.encode(prompt).tolist() or ([] if first else [self.tokenizer.end_of_text_id])
        room = max(0, self.model.config.context_length - len(first))
        kept, num_dropped = fit_prompt(token_ids, room, self.config.truncate_prompt)
        return [*first, *kept], num_dropped


def _whole_numbers(prompt: Iterable[SupportsIndex]) -> list[int]:
    try:
        if not isinstance(prompt, bytes):
            return [index(token_id) for token_id in prompt]
    except TypeError:
        pass
    kind = type(prompt).__name__
    raise GenerationError(
        "prompts that are text or ids", came=f"one of type {kind}", remedy="give a str or a list of whole numbers each"
    )


def complete(
    model: TransformerLM, tokenizer: TextTokenizer, prompts: Sequence[Prompt], config: GenerationConfig
) -> list[Completion]:
    """Write everything, and give it when it is finished. Arguments and errors: as `Writing`'s.

    Example:
        >>> from pellucid.model_config import ModelConfig
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer = character_tokenizer(["to be or not to be"])
        >>> model = TransformerLM(ModelConfig(vocab_size=tokenizer.vocab_size, d_model=64, num_heads=4))
        >>> len(complete(model, tokenizer, ["to ", ""], GenerationConfig(max_tokens=5, num_samples=2)))
        4
    """
    writing = Writing(model, tokenizer, prompts, config)
    for _ in writing:
        pass
    return writing.completions
