"""A chat written out by its template, with every character told: the template's own, or of which message.

The chat is rendered twice.

    marked: in the place of every text stands a word drawn at random; white space at its ends stays, as templates trim
            it. What is no such word is the template's own: nothing that a message says has been near it.
    plain:  with the messages as they are. It must be the marked one with the texts filled in. A template that does more
            with them than trim them, or that looks for words in them, is refused for such a chat.

One thing that templates look for is known: where the assistant's thoughts end. They are then given apart, or left out.

In: a template, messages.  Out: stretches of text.  Used by: chat.py.  Read next: chat.py.
"""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from pellucid.errors import TokenizerError
from pellucid.text.template_process import TemplateProcess

ASSISTANT = "assistant"

ROLES = frozenset((ASSISTANT, "user", "system", "developer", "tool", "function", "ipython", "model", "environment"))
"""What templates ask for. Of a speaker by another name, the name is text like what they say."""

PRIVATE = 0xE000
"""Marks are spelled with characters from here on, which Unicode leaves to everybody: no template looks for them."""

SECRET_LETTERS = 16
"""So many of 1,024, at random, begin a mark; nobody guesses them."""

DIGITS, EDGES = 0xE400, ("\ue40a", "\ue40b")
"""The number that ends a mark is spelled from here on; and marks where an answer begins and ends."""

TO_PRIVATE = {ord(str(digit)): DIGITS + digit for digit in range(10)}
FROM_PRIVATE = {there: here for here, there in TO_PRIVATE.items()}

BEGIN_THINKING, END_THINKING = "<think>", "</think>"


@dataclass(frozen=True)
class Message:
    """What one speaker says in one turn."""

    role: str
    """Who speaks: system, user, assistant; some templates know more."""
    content: str
    """What is said. It is text whatever it spells."""


@dataclass(frozen=True)
class Stretch:
    """A part of a rendered chat."""

    start: int
    """Its first character."""
    end: int
    """The one after its last."""
    message: int | None
    """Which message says it; None: the template's own."""


@dataclass(frozen=True)
class RenderedChat:
    """A chat as one text."""

    text: str
    stretches: list[Stretch]
    """All of it, in order; those of the template have no other of the template beside them."""
    generated: list[tuple[int, int]]
    """From where to where the assistant speaks, by the template's own word (`{% generation %}`), if it has one."""


class ChatRenderer:
    """A template that writes chats.

    Args:
        template: The template.
        variables: What it is given beside the messages.
        keep_white_space: Whether white space at the ends of texts may stand beside the template's own text; else it is
            marked as the rest, and a template that trims is refused where there is any.

    Raises:
        ModelFileError: if the template cannot be rendered.

    Example:
        >>> renderer = ChatRenderer("{% for one in messages %}[{{ one.content | trim }}]{% endfor %}", {})
        >>> renderer.render([Message("user", " a] "), Message("user", "[b")], begin_answer=False).stretches[1:4]
        [Stretch(start=1, end=3, message=0), Stretch(start=3, end=5, message=None), Stretch(start=5, end=7, message=1)]
    """

    def __init__(self, template: str, variables: Mapping[str, Any], *, keep_white_space: bool = True) -> None:
        self._process = TemplateProcess(template)
        self._template, self._keep_white_space = template, keep_white_space
        self._variables = {"tools": None, "documents": None, **variables}

    def render(self, messages: Sequence[Message], *, begin_answer: bool) -> RenderedChat:
        """Write a chat.

        Args:
            messages: The turns, first to last.
            begin_answer: Whether to begin the assistant's next turn.

        Raises:
            TokenizerError: if the template refuses the chat, in its own words; or if it rewrites what is said.
        """
        now = datetime.now().isoformat()
        stamp = self._stamp(messages)
        readings = [marks for reading in READINGS if (marks := _marked(messages, reading, stamp, self._edges))]
        marked = [self._chat(marks.messages, begin_answer, now, stamp) for marks in readings]
        plain = self._chat([vars(message) for message in messages], begin_answer, now)
        expected, *written = self._process.rendered([plain, *marked])
        if isinstance(expected, TokenizerError):
            raise expected
        for marks, text in zip(readings, written, strict=True):
            if isinstance(text, str) and (found := _filled(text, marks.texts, stamp)).text == expected:
                return found
        raise TokenizerError(
            "messages that the model's template writes as they stand",
            came="one that it would rewrite",
            remedy="say it in other words: perhaps it holds a word that the template looks for",
        )

    def tried(self, messages: Sequence[Message], *, begin_answer: bool) -> RenderedChat | None:
        """The same, or None for a chat that the template refuses."""
        try:
            return self.render(messages, begin_answer=begin_answer)
        except TokenizerError:
            return None

    def _chat(self, messages: Sequence[Mapping[str, str]], begin_answer: bool, now: str, stamp: str = "") -> Any:
        marks = [stamp + edge for edge in EDGES] if stamp else ["", ""]
        chat = {"messages": messages, "add_generation_prompt": begin_answer, "now": now, "marks": marks}
        return {**self._variables, **chat}

    def _stamp(self, messages: Sequence[Message]) -> str:
        """The beginning of all marks: no text has it."""
        while True:
            stamp = "".join(chr(PRIVATE + secrets.randbelow(1024)) for _ in range(SECRET_LETTERS))
            texts = chain((self._template,), (text for message in messages for text in (message.role, message.content)))
            if not any(stamp in text for text in texts):
                return stamp

    def _edges(self, text: str) -> tuple[str, str, str]:
        """White space, text, white space."""
        if not self._keep_white_space:
            return "", text, ""
        core = text.strip()
        start = len(text) - len(text.lstrip()) if core else len(text)
        return text[:start], core, text[start + len(core) :]


Reading = Callable[[Message], Mapping[str, str]]
"""How a message is given to a template: its fields beside the role."""


def _as_it_is(message: Message) -> Mapping[str, str]:
    return {"content": message.content}


def _thoughts_apart(message: Message) -> Mapping[str, str]:
    before, _, after = message.content.rpartition(END_THINKING)
    if message.role != ASSISTANT or END_THINKING not in message.content:
        return _as_it_is(message)
    thoughts = before.split(END_THINKING)[0].rstrip("\n").split(BEGIN_THINKING)[-1].lstrip("\n")
    return {"content": after.lstrip("\n"), "reasoning_content": thoughts}


def _thoughts_left_out(message: Message) -> Mapping[str, str]:
    return {"content": message.content.rpartition(END_THINKING)[2]} if message.role == ASSISTANT else _as_it_is(message)


READINGS: Sequence[Reading] = (_as_it_is, _thoughts_apart, _thoughts_left_out)
"""In the order in which they are tried. The last two are as Qwen3's and DeepSeek's templates do it by themselves."""


@dataclass(frozen=True)
class _Marks:
    messages: list[dict[str, str]]
    texts: list[tuple[int, str]]
    """For each mark the message and the text it stands for."""


def _marked(
    messages: Sequence[Message], reading: Reading, stamp: str, edges: Callable[[str], tuple[str, str, str]]
) -> _Marks | None:
    """Messages with marks in the place of texts; None if a reading has nothing of its own to say of them."""
    if reading is not _as_it_is and all(reading(message) == _as_it_is(message) for message in messages):
        return None
    texts: list[tuple[int, str]] = []

    def mark(number: int, text: str) -> str:
        texts.append((number, text))
        return stamp + f"{len(texts) - 1:06d}".translate(TO_PRIVATE)

    def around(number: int, text: str) -> str:
        before, core, after = edges(text)
        return f"{before}{mark(number, core)}{after}" if core else text

    marked = []
    for number, message in enumerate(messages):
        fields = {name: around(number, text) for name, text in reading(message).items()}
        marked.append({"role": message.role if message.role in ROLES else mark(number, message.role), **fields})
    return _Marks(marked, texts)


def _filled(rendered: str, texts: Sequence[tuple[int, str]], stamp: str) -> RenderedChat:
    """The text with its marks filled in, and whose each part is."""
    pieces: list[str] = []
    stretches: list[Stretch] = []
    edges: list[int] = []
    length = 0
    for place, part in enumerate(
        re.split(f"{stamp}([{chr(DIGITS)}-{chr(DIGITS + 9)}]{{6}}|{'|'.join(EDGES)})", rendered)
    ):
        if part in EDGES and place % 2:
            edges.append(length)
            continue
        message, text = texts[int(part.translate(FROM_PRIVATE))] if place % 2 else (None, part)
        start = length
        length += len(text)
        pieces.append(text)
        if message is None and stretches and stretches[-1].message is None:
            stretches[-1] = Stretch(stretches[-1].start, length, None)
        elif text:
            stretches.append(Stretch(start, length, message))
    return RenderedChat("".join(pieces), stretches, list(zip(edges[::2], edges[1::2], strict=False)))
