"""Chats in JSON lines → conversations, read as a stream as often as wanted, with a fingerprint.

    {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}
    {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}

A conversation without an answer, and one that came before, are left out and told: a copy on the other side of the
held-out cut would make the model look better than it is.

In: paths.  Out: `ChatSources`, `open_chats`, `are_chats`.  Used by: prepare_chats.py, train, the command line.
Read next: prepare_chats.py.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pellucid.data.pieces import printable
from pellucid.data.reading import JsonLines, ReadingOptions, told
from pellucid.data.sources import HELD_OUT_PERCENT, MOST_HELD_OUT_PERCENT
from pellucid.data.split import Split
from pellucid.errors import DataError
from pellucid.text import Message

LISTS = ("messages", "conversations")
"""What the list of turns is called; the first that a row has counts."""
SUFFIXES = (".jsonl", ".ndjson")
ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant", "model": "assistant"}
"""Speakers by other names."""
ANSWERS = "assistant"
FEWEST = 5  # conversations, of which one can be held out
WITHOUT_ANSWER = "Left out {n} conversation{s} without an answer."
COPIES = "Left out {n} conversation{s} that came before."
REASONING = "Left out what {n} message{s} called reasoning or tools: only their content is read."
OTHER_FIELDS = ("tool_calls", "function_call", "reasoning_content", "reasoning")

Conversation = tuple[Message, ...]


class ChatSources:
    """Conversations in a fixed order, surveyed once; what training asks of `Sources`, answered for chats.

    Args:
        readers: The files.
        held_out_percent: How many percent of the conversations to hold out; 0 gives everything to training.

    Raises:
        DataError: if there is no conversation with an answer, or a row is no chat.

    Attributes:
        characters: Of all messages together; likewise the next.
        utf8_bytes: Their length in UTF-8.
        documents: As many numbers as there are conversations.
        alphabet: Their distinct characters.
        fingerprint: SHA-256 over all conversations in their order.
        held_out_percent: As given.
        split: Which conversations are held out.
        notes: Sentences for the user.
    """

    def __init__(self, readers: Sequence[JsonLines], *, held_out_percent: int = HELD_OUT_PERCENT) -> None:
        if not 0 <= held_out_percent <= MOST_HELD_OUT_PERCENT:
            raise DataError(
                f"0 to {MOST_HELD_OUT_PERCENT} percent of the conversations to be held out",
                came=f"{held_out_percent}",
                remedy=f"choose {HELD_OUT_PERCENT}, or 0 to use everything",
            )
        self._readers = tuple(readers)
        self._digests: set[bytes] = set()
        changes: Counter[str] = Counter()
        whole, letters, lengths = hashlib.sha256(), set[str](), list[int]()
        self.utf8_bytes, turns = 0, 0
        for _, conversation in self._rows(changes):
            digest = _digest(conversation)
            changes[COPIES] += digest in self._digests
            if digest in self._digests:
                continue
            self._digests.add(digest)
            whole.update(digest)
            lengths.append(sum(len(message.content) for message in conversation))
            turns += len(conversation)
            for message in conversation:
                letters.update(message.content)
                self.utf8_bytes += len(message.content.encode("utf-8"))
        if not lengths:
            raise DataError(
                "conversations in which an assistant answers",
                came=f"none in {', '.join(reader.name for reader in self._readers[:3])}",
                remedy='give rows of {"messages": [{"role": "user", …}, {"role": "assistant", …}]}',
            )
        self.characters, self.documents = sum(lengths), range(len(lengths))
        self.alphabet, self.fingerprint = "".join(sorted(letters)), whole.hexdigest()
        self.held_out_percent, self.split = held_out_percent, _split(lengths, held_out_percent)
        if not self.split.held_out_characters:
            self.held_out_percent = 0
        turns_each = f"Chats: {turns / len(lengths):.1f} turns each; what is learned are the assistant's alone."
        self.notes = (turns_each, *told(changes), _sentence(self.split, held_out_percent))

    def conversations(self) -> Iterator[tuple[str, Conversation]]:
        """Read everything once more.

        Yields:
            Where each conversation stands, for messages, and its turns.

        Raises:
            DataError: if the files are not what they were.
        """
        left = set(self._digests)
        for place, conversation in self._rows(Counter()):
            digest = _digest(conversation)
            if digest in left:
                left.remove(digest)
                yield place, conversation
            elif digest not in self._digests:
                raise _changed(self._readers)
        if left:
            raise _changed(self._readers)

    def _rows(self, changes: Counter[str]) -> Iterator[tuple[str, Conversation]]:
        for reader in self._readers:
            for number, row in reader.values():
                place = f"line {number:,} of {reader.name}"
                conversation = _conversation(row, place, changes)
                if any(message.role == ANSWERS and message.content for message in conversation):
                    yield place, conversation
                else:
                    changes[WITHOUT_ANSWER] += 1


def are_chats(path: Path) -> bool:
    """Whether a file is JSON lines whose first row is a chat."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    if not name.endswith(SUFFIXES) or not path.is_file():
        return False
    try:
        _, row = next(iter(JsonLines(path, ReadingOptions()).values()))
    except (DataError, StopIteration):
        return False
    return isinstance(row, dict) and any(isinstance(row.get(name), list) for name in LISTS)


def open_chats(
    paths: Iterable[str | os.PathLike[str]], *, encoding: str | None = None, held_out_percent: int = HELD_OUT_PERCENT
) -> ChatSources:
    """Survey the conversations in files.

    Args:
        paths: Files; one that is given twice is read once.
        encoding: None for UTF-8.
        held_out_percent: How many percent of the conversations to hold out.

    Raises:
        DataError: if a row is no chat; it names the line.
    """
    different = {Path(path).resolve(): Path(path) for path in paths}
    readers = [JsonLines(path, ReadingOptions(encoding)) for path in different.values()]
    return ChatSources(readers, held_out_percent=held_out_percent)


def _conversation(row: Any, place: str, changes: Counter[str]) -> Conversation:
    turns = next((row[name] for name in LISTS if isinstance(row, dict) and isinstance(row.get(name), list)), None)
    if turns is None:
        raise _no_chat(place, "a row without a list of messages")
    return tuple(_message(turn, place, changes) for turn in turns)


def _message(turn: Any, place: str, changes: Counter[str]) -> Message:
    if not isinstance(turn, dict):
        raise _no_chat(place, f"a message that is {type(turn).__name__}")
    role = turn.get("role", turn.get("from"))
    content = turn.get("content", turn.get("value"))
    if isinstance(content, list):  # the way of those who send pictures, too
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        content = "".join(texts) if len(texts) == len(content) else None
    if not isinstance(role, str) or not role:
        raise _no_chat(place, "a message without a role")
    if not isinstance(content, str):
        raise _no_chat(place, f"a message by “{printable(role)}” whose content is no text")
    changes[REASONING] += any(turn.get(name) for name in OTHER_FIELDS)
    try:
        content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _no_chat(place, "half of a character (a lone surrogate)") from error
    return Message(ROLES.get(role, role), content)


def _no_chat(place: str, came: str) -> DataError:
    return DataError(
        f"messages with a role and a content, which are text, in {place}",
        came=came,
        remedy="repair or remove that line",
    )


def _split(lengths: Sequence[int], percent: int) -> Split:
    """One conversation of so many is held out, the last of each such group; of few two, or the last of all."""
    count = len(lengths)
    if not percent or count < FEWEST:
        return Split("none", 0, 0, count)
    every = min(round(100 / percent), count // 2 if count >= 2 * FEWEST else count)
    return Split("documents", percent, sum(lengths[every - 1 :: every]), count, every - 1, every)


def _sentence(split: Split, percent: int) -> str:
    if split.kind != "none":
        held_out = len(split.held_out_documents)
        return f"Held out: {held_out:,} of {split.documents:,} conversations (one in {split.every})."
    why = "as asked" if not percent else f"since there are fewer than {FEWEST} conversations"
    return f"Held out: nothing, {why}; so no figure will say how the model answers what it has not read."


def _digest(conversation: Conversation) -> bytes:
    told = json.dumps([[message.role, message.content] for message in conversation]).encode("ascii")
    return hashlib.sha256(told).digest()


def _changed(readers: Sequence[JsonLines]) -> DataError:
    names = ", ".join(reader.name for reader in readers[:3])
    return DataError(f"{names} to stay as it was", came="other chats than a moment ago", remedy="start again")
