"""What stands beside the weights in a model's folder: how a chat is written, and which ids end what the model writes.

In: a folder.  Out: the text of a chat template; ids.  Used by: loading, huggingface.  Read next: huggingface.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pellucid.errors import ModelFileError

TEMPLATE = "chat_template.jinja"
"""The file, in Hugging Face's folders and in a run's, that says how a chat becomes one text."""

TOKENIZER_CONFIG, GENERATION_CONFIG = "tokenizer_config.json", "generation_config.json"


def read_chat_template(folder: Path) -> str | None:
    """How a chat becomes one text, in the words of Jinja; None if the folder does not say.

    The file of its own goes before tokenizer_config.json, as in transformers; of several named templates the one called
    default is taken.

    Raises:
        ModelFileError: if the file is not text in UTF-8.
    """
    path = folder / TEMPLATE
    try:
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, UnicodeDecodeError) as error:
        remedy = "copy it again from where it came, or take it out"
        raise ModelFileError(f"text in UTF-8 in '{path}'", came=str(error), remedy=remedy) from error
    for name in ("chat_template.json", TOKENIZER_CONFIG):
        told = _told(folder / name).get("chat_template")
        if isinstance(told, list):  # several, by name
            told = {one.get("name"): one.get("template") for one in told if isinstance(one, Mapping)}.get("default")
        if isinstance(told, str) and told:
            return told
    return None


def read_end_ids(folder: Path, ids: Mapping[str, int]) -> frozenset[int]:
    """Ids that end what a model writes: all that any file of its folder names.

    A chat model ends a turn with one and a text with another, and each file may know only one of them.

    Args:
        folder: Hugging Face's, with config.json, generation_config.json and tokenizer_config.json, where they are.
        ids: The ids of the tokenizer's special tokens by name; tokenizer_config.json tells the end by its name.
    """
    found: set[int] = set()
    for name in ("config.json", GENERATION_CONFIG):
        told = _told(folder / name)
        inner = told.get("text_config")
        for value in (told.get("eos_token_id"), inner.get("eos_token_id") if isinstance(inner, Mapping) else None):
            found.update(one for one in (value if isinstance(value, list) else [value]) if type(one) is int)
    named = _told(folder / TOKENIZER_CONFIG).get("eos_token")
    named = named.get("content") if isinstance(named, Mapping) else named
    if isinstance(named, str) and named in ids:
        found.add(ids[named])
    return frozenset(found)


def _told(path: Path) -> Mapping[str, Any]:
    """The fields of a file that need not be there; a damaged one says nothing: it is not the model."""
    try:
        fields = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
    return fields if isinstance(fields, Mapping) else {}
