"""Chats, a template and a tokenizer → `train.tokens` and `held_out.tokens`, as a stream.

Each conversation is written as the model will read it when it is used: by its own template, in which no message can
spell a control token. Answers are marked, the token that ends each of them included, for a model learns to stop by
being asked when. A conversation longer than a row loses whole turns from its end, and is told.

In: `ChatSources`, a `ChatTemplate`, a folder.  Out: `prepare_chats`, `PreparedChats`.  Used by: train.
Read next: conversations.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pellucid.data.chats import ANSWERS, ChatSources, Conversation
from pellucid.data.pieces import printable
from pellucid.data.prepare import HELD_OUT_FILE, TRAIN_FILE, PreparedData, open_prepared
from pellucid.data.reading import told
from pellucid.data.split import TENTHS
from pellucid.data.token_writer import TokenWriter
from pellucid.errors import DataError, TokenizerError
from pellucid.text import ChatTemplate, EncodedChat, TextTokenizer

SHORTENED = "Left out the last turns of {n} conversation{s}, which are longer than a row of %d tokens."
TOO_LONG = "Left out {n} conversation{s} whose first answer ends beyond a row of %d tokens."


@dataclass(frozen=True)
class PreparedChats:
    """Conversations that are ready to train on.

    Attributes:
        data: Both sides as ids.
        end_ids: The tokens that end answers.
        question: What a person says before the first held-out answer, or without one, before the first of all.
        notes: Sentences about what was left out.
    """

    data: PreparedData
    end_ids: frozenset[int]
    question: str
    notes: tuple[str, ...]


def prepare_chats(
    sources: ChatSources, template: ChatTemplate, tokenizer: TextTokenizer, folder: Path, *, context_length: int
) -> PreparedChats:
    """Encode both sides of the split into two token files.

    Args:
        sources: The chats.
        template: The model's.
        tokenizer: The model's.
        folder: Where the files go; made if missing.
        context_length: Tokens of a row.

    Raises:
        DataError: if the template does not take a conversation, naming the line, or ends no answer; or if nothing fits.
    """
    held_out_numbers, changes, end_ids = set(sources.split.held_out_documents), Counter[str](), set[int]()
    folder.mkdir(parents=True, exist_ok=True)
    with (
        TokenWriter(folder / TRAIN_FILE, tokenizer, text=sources.fingerprint) as train,
        TokenWriter(folder / HELD_OUT_FILE, tokenizer, text=sources.fingerprint) as held_out,
    ):
        train.kind = held_out.kind = "chats"
        train.distinct_characters = held_out.distinct_characters = len(sources.alphabet)
        seen, questions = 0, dict[bool, str]()
        for number, (place, conversation) in enumerate(sources.conversations()):
            fitting, chat = _fitting(conversation, template, place, context_length)
            if chat is None:
                changes[TOO_LONG % context_length] += 1
                continue
            changes[SHORTENED % context_length] += len(fitting) < len(conversation)
            ids, is_answer = np.array(chat.ids), np.array(chat.is_answer)
            end_ids |= _ends(ids, is_answer, tokenizer, place)
            is_held_out = number in held_out_numbers
            questions.setdefault(is_held_out, _question(fitting))
            (held_out if is_held_out else train).add_chat(
                ids,
                is_answer,
                characters=sum(len(message.content) for message in fitting if message.role == ANSWERS),
                tenth=seen * TENTHS // max(1, len(held_out_numbers)),
            )
            seen += is_held_out
    prepared = open_prepared(folder, tokenizer)
    if not len(prepared.train.answers):
        raise DataError(
            f"a conversation that fits into a row of {context_length:,} tokens",
            came="none whose first answer does",
            remedy="choose a longer --model.context-length, if the model has one",
        )
    question = questions.get(True, questions.get(False, ""))
    return PreparedChats(prepared, frozenset(end_ids), question, tuple(told(changes)))


def _question(conversation: Conversation) -> str:
    """What is said last before the first answer."""
    first = next(number for number, message in enumerate(conversation) if message.role == ANSWERS)
    return conversation[first - 1].content if first else ""


def _fitting(
    conversation: Conversation, template: ChatTemplate, place: str, context_length: int
) -> tuple[Conversation, EncodedChat | None]:
    """As many turns from the first as fit into a row, the last of them an answer; and nothing if none is left."""
    answers = [number for number, message in enumerate(conversation, 1) if message.role == ANSWERS]
    for turns in reversed(answers):
        kept = conversation[:turns]
        try:
            chat = template.encode(kept, begin_answer=False)
        except TokenizerError as error:
            expected = f"{error.expected}, in {place}"
            raise DataError(expected, came=error.came, remedy=error.remedy) from error
        if len(chat.ids) <= context_length + 1:  # the last predicts nothing
            return kept if turns < answers[-1] else conversation, chat
    return (), None


def _ends(ids: np.ndarray, is_answer: np.ndarray, tokenizer: TextTokenizer, place: str) -> set[int]:
    """The last token of each answer, which a model that is to stop must be taught."""
    last = set(ids[is_answer & ~np.append(is_answer[1:], False)].tolist())
    if plain := last - set(tokenizer.special_tokens.values()):
        word = printable(tokenizer.decode([min(plain)]))
        raise DataError(
            "a chat template that ends every answer with a special token, so that the model learns to stop",
            came=f"one that ends with “{word}”, in {place}",
            remedy="use a model whose template does, or one without a template, which gets ChatML",
        )
    return last
