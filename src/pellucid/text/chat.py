"""Chats as ids: turns of several speakers, each between control tokens that no text can become.

A model that answers was trained on texts in which control tokens say who speaks, and where a turn ends. Its template, a
small program that came with it, writes a chat as one text (chat_rendering.py), and tells what in it is its own. Only
there do control tokens become ids; what a message says is text, whatever it spells. All parts are encoded as one
(part_encoder.py), so that the ids are those that the model learned from.

In: messages, a template, a tokenizer.  Out: ids, and which of them are answers.  Used by: data, the command line.
Read next: graphemes.py.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from pellucid.text.chat_rendering import ASSISTANT, ChatRenderer, Message, RenderedChat
from pellucid.text.definition import added_tokens, outline_of
from pellucid.text.part_encoder import Part, PartEncoder
from pellucid.text.splitting import special_finder
from pellucid.text.tokenizer import TextTokenizer

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""The template given to a model that has none when it is fine-tuned on chats."""

CHATML_TOKENS = ("<|im_start|>", "<|im_end|>")
"""The special tokens it needs: one begins a turn, one ends it."""

KNOWN_BEGINNINGS = ("<|begin_of_text|>", "<s>", "<bos>", "<｜begin▁of▁sentence｜>", "<|startoftext|>")
"""Names of tokens that begin a text, for a template that writes one and a tokenizer that does not tell."""


@dataclass(frozen=True)
class EncodedChat:
    """A chat as a model reads it."""

    ids: list[int]
    """All ids, in order."""
    is_answer: list[bool]
    """For each id whether the assistant says it, the end of its turn included: what fine-tuning scores."""


class ChatTemplate:
    """A model's way to write chats.

    Args:
        template: Its text, in Jinja.
        tokenizer: The model's.
        variables: What the template is given beside the messages, such as enable_thinking.

    Raises:
        ModelFileError: if it cannot be rendered safely.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> template = ChatTemplate("{{ messages[0].content }}{{ eos_token }}", character_tokenizer(["<|endoftext|>"]))
        >>> template.encode([Message("user", "<|endoftext|>")]).ids
        [1, 10, 4, 6, 3, 7, 5, 8, 4, 9, 8, 10, 2, 0]
    """

    def __init__(self, template: str, tokenizer: TextTokenizer, *, variables: Mapping[str, Any] | None = None) -> None:
        self._tokenizer = tokenizer
        # Tokens that are not special are control tokens, too, where a template writes them: <think>, <tool_call>.
        others = {
            token["content"]: token["id"]
            for token in added_tokens(outline_of(tokenizer.definition))
            if token["content"] in template and _is_a_sign(token["content"])
        }
        control = others | tokenizer.special_tokens
        self._control = special_finder(control)
        self._others = special_finder(others.keys() - tokenizer.special_tokens.keys())
        self._encoder = PartEncoder(tokenizer, control)
        names = {"bos_token": self._beginning, "eos_token": tokenizer.configured_end or tokenizer.end_of_text}
        self._renderer = ChatRenderer(
            template,
            {name: value for name, value in names.items() if value} | dict(variables or {}),
            keep_white_space=not any(any(map(str.isspace, token)) for token in control),
        )
        self._tells_answers = bool(re.search(r"{%[-+]?\s*generation\b", template))
        self._begin_answer, self._end_of_turn = self._probed()
        self.end_of_turn_id: int | None = None if self._end_of_turn is None else control[self._end_of_turn]
        """What ends the assistant's turn; None if no one token does."""

    def encode(self, messages: Sequence[Message], *, begin_answer: bool = True) -> EncodedChat:
        """Turn a chat into ids.

        Args:
            messages: The turns, first to last.
            begin_answer: Whether the assistant's next turn is begun, so that a model goes on with it.

        Returns:
            The ids. The token that begins a text, if the tokenizer has one that it puts before every text, is the
            first, and stands there once, whoever wrote it.

        Raises:
            TokenizerError: if the template refuses the chat, in its own words, or rewrites what is said; or if a text
                has characters without an id.
        """
        chat = self._renderer.render(messages, begin_answer=begin_answer)
        answers = chat.generated if self._tells_answers else list(self._answers(chat, messages))
        ids, is_answer = self._encoder.encode(list(self._parts(chat, messages, answers)))
        num_missing = self._num_beginnings_missing(ids)
        beginning = self._tokenizer.beginning_ids if num_missing > 0 else []
        first = max(0, -num_missing)
        return EncodedChat([*beginning, *ids[first:]], [*([False] * len(beginning)), *is_answer[first:]])

    def _parts(
        self, chat: RenderedChat, messages: Sequence[Message], answers: Sequence[tuple[int, int]]
    ) -> Iterator[Part]:
        """What is text and what are control tokens, cut where answers begin and end."""
        start = 0
        for token in self._control_tokens(chat, messages):
            yield from _cut(chat.text, start, token.start(), answers)
            yield Part(token[0], is_control=True, is_counted=_overlaps(token.span(), answers))
            start = token.end()
        yield from _cut(chat.text, start, len(chat.text), answers)

    def _control_tokens(self, chat: RenderedChat, messages: Sequence[Message]) -> Iterator[re.Match[str]]:
        """Those of the template, and of what the assistant has said those that are not special (<think>)."""
        for stretch in chat.stretches:
            if stretch.message is None:
                yield from self._control.finditer(chat.text, stretch.start, stretch.end)
            elif messages[stretch.message].role == ASSISTANT:
                yield from self._others.finditer(chat.text, stretch.start, stretch.end)

    def _answers(self, chat: RenderedChat, messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
        """From where to where the assistant speaks: after what begins an answer, to the token that ends its turn."""
        said = [stretch for stretch in chat.stretches if stretch.message is not None]
        turns = [list(turn) for _, turn in groupby(said, key=lambda stretch: stretch.message)]
        bounds = [0, *(turn[-1].end for turn in turns)]
        following = [*(turn[0].start for turn in turns[1:]), len(chat.text)]
        for turn, before, after in zip(turns, bounds, following, strict=False):
            if messages[turn[0].message or 0].role != ASSISTANT:
                continue
            start, end = turn[0].start, turn[-1].end
            begun = chat.text.rfind(self._begin_answer, before, start) if self._begin_answer else -1
            ended = self._control.search(chat.text, end, after)
            yield (
                begun + len(self._begin_answer) if begun >= 0 else start,
                ended.end() if ended and ended[0] == self._end_of_turn else end,
            )

    def _probed(self) -> tuple[str, str | None]:
        """What a template writes before an answer, and the token it writes after one."""
        user, assistant = Message("user", "a"), Message(ASSISTANT, "b")
        shapes = (([user], False), ([user], True), ([user, assistant], False))
        without, begun, whole = (self._renderer.tried(some, begin_answer=begin) for some, begin in shapes)
        begin_answer, end_of_turn = "", None
        if without and begun and begun.text.startswith(without.text):
            begin_answer = begun.text[len(without.text) :]
        if whole and (said := [stretch for stretch in whole.stretches if stretch.message == 1]):
            ended = self._control.search(whole.text, said[-1].end)
            end_of_turn = ended[0] if ended else None
        return begin_answer, end_of_turn

    def _num_beginnings_missing(self, ids: Sequence[int]) -> int:
        """1 if what begins a text is to be put before; else minus how many ids too many of it there are."""
        tokenizer = self._tokenizer
        beginning = tokenizer.beginning_ids or [tokenizer.special_tokens.get(self._beginning or "", -1)]
        num = len(beginning)
        times = next((n for n in range(len(ids)) if list(ids[n * num : (n + 1) * num]) != beginning), 0)
        if times == 0:
            return 1 if tokenizer.beginning_ids else 0
        return -num * (times - 1)

    @property
    def _beginning(self) -> str | None:
        tokenizer = self._tokenizer
        if tokenizer.beginning_ids:
            return tokenizer.decode(tokenizer.beginning_ids[-1:], show_special=True)
        known = (name for name in KNOWN_BEGINNINGS if name in tokenizer.special_tokens)
        return tokenizer.configured_beginning or next(known, None)


def _cut(text: str, start: int, end: int, answers: Sequence[tuple[int, int]]) -> Iterator[Part]:
    edges = sorted({start, end, *(edge for answer in answers for edge in answer if start < edge < end)})
    for here, there in pairwise(edges):
        yield Part(text[here:there], is_counted=_overlaps((here, there), answers))


def _overlaps(span: tuple[int, int], answers: Sequence[tuple[int, int]]) -> bool:
    return any(start < span[1] and span[0] < end for start, end in answers)


def _is_a_sign(token: str) -> bool:
    """Whether a token looks like one that controls, and not like a word or white space.

    Example:
        >>> [_is_a_sign(token) for token in ("<think>", "[TOOL]", "the", "\\n\\n")]
        [True, True, False, False]
    """
    return not any(end.isalnum() or end.isspace() for end in (token[0], token[-1]))
