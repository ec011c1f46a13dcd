"""A conversation: messages, answers, and what of them the model can still see.

Every answer is written after the whole chat, as the model's template spells it. When the chat outgrows the context, the
oldest questions are forgotten, each with its answer, until there is room for an answer; the system message never is. An
answer ends where the context does: nothing slides away unsaid while it is written.

What the model has read stays read: the next question costs only what is new since the last.

In: a model, a template, messages.  Out: answers being written.  Used by: serve, the command line.
Read next: ../loading.py.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from pellucid.errors import GenerationError, TokenizerError
from pellucid.generate.reading import Reading
from pellucid.generate.sampling import new_seed
from pellucid.generate.stream import Completion, Writing
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import ChatTemplate, Message, TextTokenizer
from pellucid.text.chat_rendering import END_THINKING

LEAST_ROOM = 4
"""A part of the context: with less than a fourth of it left for an answer, older turns are forgotten first."""

FIRST_ROOM = 256
"""Positions for a first answer; there will be more as it needs them."""


@dataclass(frozen=True)
class Turn:
    """A question, and its answer being written."""

    question: Message
    writing: Writing
    """Iterating over it writes the answer."""
    num_forgotten: int = 0
    """How many older questions, with their answers, were forgotten for it."""

    @property
    def answer(self) -> Completion:
        """The answer, as far as it is written."""
        return self.writing.completions[0]


class Conversation:
    """A chat that goes on.

    Args:
        model: The model.
        tokenizer: Its own.
        template: How it is written.
        config: How to choose and when to stop; answer i has the seed plus i.
        end_ids: Ids that end an answer, beside the end of the text and the end of a turn.
    """

    def __init__(
        self,
        model: TransformerLM,
        tokenizer: TextTokenizer,
        template: ChatTemplate,
        config: GenerationConfig,
        end_ids: Collection[int] = (),
    ) -> None:
        self.model, self.tokenizer, self.template = model, tokenizer, template
        ends = () if template.end_of_turn_id is None else (template.end_of_turn_id,)
        self.end_ids = frozenset({*end_ids, *ends})
        self.config = replace(config, seed=new_seed() if config.seed is None else config.seed)
        self.messages: list[Message] = []
        """What was said, the system message not among it."""
        self.system: str | None = None
        self._reading: Reading | None = None
        self._num_asked = 0

    def set_system(self, text: str | None) -> None:
        """Say what the model is told before everything; None: nothing.

        Raises:
            TokenizerError: if the template takes no system message, or not this one.
            GenerationError: if the template leaves it out without a word.
        """
        probe = [Message("user", "a")]
        if text is not None:
            told = self.template.encode([Message("system", text), *probe]).ids
            if text.strip() and told == self.template.encode(probe).ids:
                raise GenerationError(
                    "a model that can be told something before the chat",
                    came="one whose chat template leaves the system message out",
                    remedy="say it in the first message",
                )
        self.system = text

    def reset(self) -> None:
        """Forget what was said; the system message stays."""
        self.messages = []

    def ask(self, text: str) -> Turn:
        """Begin an answer. It is part of the conversation only when it is `keep`t.

        Args:
            text: The question.

        Raises:
            GenerationError: if the question alone is too long for the context, with both numbers.
            TokenizerError: if it cannot be encoded, or the template does not take it.
        """
        question, kept, forgotten = Message("user", text), self.messages, 0
        context_length = self.model.config.context_length
        least = max(1, min(self.config.max_tokens, context_length // LEAST_ROOM))
        ids = self._ids([*kept, question])
        while kept and len(ids) + least > context_length:
            kept, forgotten = _without_oldest(kept), forgotten + 1
            ids = self._ids([*kept, question])
        if len(ids) >= context_length:
            raise GenerationError(
                f"a message that fits into the model's context of {context_length:,} tokens",
                came=f"one that makes a chat of {len(ids):,}, with nothing said before it",
                remedy="shorten it",
            )
        room = context_length - len(ids)
        seed = ((self.config.seed or 0) + self._num_asked) % 2**63
        config = replace(self.config, seed=seed, num_samples=1, max_tokens=min(self.config.max_tokens, room))
        self._reading = self._reading or Reading(self.model, 1, len(ids) + min(room, FIRST_ROOM))
        writing = Writing(self.model, self.tokenizer, [ids], config, self.end_ids, self._reading)
        self.messages, self._num_asked = kept, self._num_asked + 1
        return Turn(question, writing, forgotten)

    def keep(self, turn: Turn) -> bool:
        """Make a turn part of the conversation, its answer as far as it is written.

        Returns:
            Whether it is. It is not if nothing of an answer is written, or if the template cannot spell the answer as
            it stands, also not without the thoughts before it: then every later question would be refused.
        """
        text = turn.answer.text
        if not text and turn.answer.finish_reason is None:
            return False
        for said in (text, text.rpartition(END_THINKING)[2]):
            messages = [*self.messages, turn.question, Message("assistant", said)]
            try:
                self._ids([*messages, Message("user", "a")])
            except TokenizerError:
                continue
            self.messages = messages
            return True
        return False

    def take_back(self) -> str | None:
        """Forget the last question and its answer; the question, if there was one."""
        if not self.messages:
            return None
        *self.messages, question, _ = self.messages
        return question.content

    def is_full(self, turn: Turn) -> bool:
        """Whether an answer ended because the context did."""
        used = len(turn.answer.prompt_ids) + len(turn.answer.token_ids)
        return turn.answer.finish_reason == "length" and used >= self.model.config.context_length

    def _ids(self, messages: list[Message]) -> list[int]:
        system = [] if self.system is None else [Message("system", self.system)]
        return self.template.encode([*system, *messages]).ids


class Continuation:
    """What a model without a template can do: go on from a text. The same methods, and no memory.

    Args:
        model: The model.
        tokenizer: Its own.
        config: How to choose and when to stop; text i has the seed plus i.
        end_ids: Ids that end a text.
    """

    def __init__(
        self,
        model: TransformerLM,
        tokenizer: TextTokenizer,
        config: GenerationConfig,
        end_ids: Collection[int] = (),
    ) -> None:
        self.model, self.tokenizer, self.end_ids = model, tokenizer, frozenset(end_ids)
        self.config = replace(config, seed=new_seed() if config.seed is None else config.seed)
        self._num_asked = 0
        self._last: str | None = None

    def set_system(self, text: str | None) -> None:
        """Refuse: there is nothing to tell it.

        Raises:
            GenerationError: always, unless it is to be told nothing.
        """
        if text is not None:
            raise GenerationError(
                "a model with a chat template, for a system message",
                came="one that only continues text",
                remedy="begin the text itself as you like it",
            )

    def reset(self) -> None:
        """Nothing is remembered anyway."""

    def ask(self, text: str) -> Turn:
        """Begin to go on from a text.

        Raises:
            GenerationError: if the text is too long for the context, with both numbers.
            TokenizerError: if it cannot be encoded.
        """
        seed = ((self.config.seed or 0) + self._num_asked) % 2**63
        config = replace(self.config, seed=seed, num_samples=1)
        writing = Writing(self.model, self.tokenizer, [text], config, self.end_ids)
        self._num_asked += 1
        self._last = text
        return Turn(Message("user", text), writing)

    def keep(self, turn: Turn) -> bool:
        """Nothing is remembered; so nothing is missing."""
        return True

    def take_back(self) -> str | None:
        """The last text."""
        return self._last

    def is_full(self, turn: Turn) -> bool:
        """A text may go on for ever: its beginning slides out of sight."""
        return False


def _without_oldest(messages: list[Message]) -> list[Message]:
    """Without the oldest question and all that answers it.

    Example:
        >>> [one.content for one in _without_oldest([Message("user", "a"), Message("assistant", "b")])]
        []
    """
    asked = [place for place, message in enumerate(messages) if message.role == "user" and place > 0]
    return messages[asked[0] :] if asked else []
