"""Chats for tests: files, and a tokenizer that knows ChatML.

In: conversations.  Out: `chat_file`, `a_chat`, `chat_tokenizer`.  Used by: the tests of data, train and whole.
Read next: test_chats.py.
"""

import json
from pathlib import Path

from pellucid.text import CHATML_TOKENS, TextTokenizer, character_tokenizer, with_new_tokens

ANIMALS = {"cat": "meow", "dog": "woof", "cow": "moo", "hen": "cluck", "owl": "hoot", "bee": "buzz"}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,?!<|>_\n"


def a_chat(*turns: str) -> dict:
    """Turns by the user and the assistant, one after the other."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": turn} for n, turn in enumerate(turns)]}


def animal_chats() -> list[dict]:
    """Questions about animals, in two ways."""
    ask = ("the {}?", "and what does a {} say?")
    return [a_chat(way.format(animal), sound) for way in ask for animal, sound in ANIMALS.items()]


def chat_file(path: Path, rows: list[dict]) -> Path:
    """A .jsonl file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def chat_tokenizer() -> TextTokenizer:
    """Letters, and the tokens of ChatML."""
    return with_new_tokens(character_tokenizer([LETTERS]), CHATML_TOKENS)
