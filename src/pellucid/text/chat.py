"""Chats as ids: turns of several speakers, each between marks that no text can spell.

A model that answers was trained on texts in which special tokens say who speaks, and where a turn ends. They come from
the model's template alone: whatever a message says is text, and stays text where it spells a special token.

In: messages, a template, a tokenizer.  Out: ids, and which of them are answers.  Used by: data, the command line.
Read next: graphemes.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pellucid.errors import TokenizerError
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


@dataclass(frozen=True)
class Message:
    """What one speaker says in one turn."""

    role: str
    """Who speaks: system, user, assistant; some templates know more."""
    content: str
    """What is said. It is text whatever it spells."""


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

    Raises:
        TokenizerError: if it cannot be rendered safely.
    """

    def __init__(self, template: str, tokenizer: TextTokenizer) -> None:
        if template != CHATML or any(token not in tokenizer.special_tokens for token in CHATML_TOKENS):
            raise TokenizerError("the template ChatML", came="another", remedy="wait for the next step")
        self._tokenizer = tokenizer

    def encode(self, messages: Sequence[Message], *, begin_answer: bool = True) -> EncodedChat:
        """Turn a chat into ids.

        Args:
            messages: The turns, first to last.
            begin_answer: Whether the assistant's next turn is begun, so that a model goes on with it.
        """
        begin, end = (self._tokenizer.special_tokens[token] for token in CHATML_TOKENS)
        ids, is_answer = [*self._tokenizer.beginning_ids], [False] * len(self._tokenizer.beginning_ids)

        def add(more: Sequence[int], answers: bool = False) -> None:
            ids.extend(more)
            is_answer.extend([answers] * len(more))

        for message in messages:
            add([begin, *self._tokenizer.encode(f"{message.role}\n").tolist()])
            add([*self._tokenizer.encode(message.content).tolist(), end], message.role == "assistant")
            add(self._tokenizer.encode("\n").tolist())
        if begin_answer:
            add([begin, *self._tokenizer.encode("assistant\n").tolist()])
        return EncodedChat(ids, is_answer)
