"""A tokenizer as the entries of a GGUF file: what gguf_vocabulary.py reads, written.

    byte pairs   tokens, merges, and the name of the rule by which llama.cpp cuts words as the tokenizer does
    pieces       tokens, and a score for each, in the order in which its merges come

Ids of what begins and ends a text are always told, and whether they are put before and after every text: where a file
does not say, llama.cpp takes 11, a comma, or what its own list of rules has.

In: `Outgoing`.  Out: entries.  Used by: gguf_writing, reach.  Read next: gguf_writing.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.convert.outgoing import Outgoing
from pellucid.convert.word_rules import name_of, words_of
from pellucid.errors import ModelFileError

PLAIN, UNKNOWN, SPECIAL, ADDED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Kinds of tokens by their numbers there."""

CHARACTERS = "its tokens are characters"
"""Why a model of characters is for no runtime but ours and transformers."""


def describe_tokens(model: Outgoing) -> dict[str, Any]:
    """The entries about a vocabulary.

    Raises:
        ModelFileError: if llama.cpp has no such tokenizer, with the reason.
    """
    tokenizer, definition = model.tokenizer, json.loads(model.tokenizer.definition)
    if tokenizer.kind == "characters":
        raise _cannot(CHARACTERS)
    rule = words_of(tokenizer)
    tokens, kinds = _listed(model, definition)
    if rule is not None:
        name = name_of(rule)
        if name is None:
            raise _cannot("it cuts words by a rule that llama.cpp does not know")
        own: dict[str, Any] = {"model": "gpt2", "pre": name, "merges": [" ".join(pair) for pair in _merges(definition)]}
    elif _is_of_pieces(definition):
        space = "Prepend" in json.dumps(definition["normalizer"]) or _puts_space_before(definition)
        own = {"model": "llama", "scores": _scores(tokens, _merges(definition)), "add_space_prefix": space}
        for number, token in enumerate(tokens):
            if kinds[number] == PLAIN and len(token) == 6 and token.startswith("<0x"):
                kinds[number] = BYTE
        unknown = definition["model"].get("unk_token")
        if unknown in tokens:
            kinds[tokens.index(unknown)] = UNKNOWN
            own["unknown_token_id"] = tokens.index(unknown)
    else:
        raise _cannot("it is neither of byte pairs nor of SentencePiece's kind")
    own |= {"tokens": tokens, "token_type": kinds, **_ends(model)}
    return {f"tokenizer.ggml.{key}": value for key, value in own.items()} | _template(model)


def _listed(model: Outgoing, definition: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    """Every row of the embedding as a token, in the order of ids, and its kind."""
    rows = model.config.vocab_size
    tokens, kinds = [f"[PAD{number}]" for number in range(rows)], [UNUSED] * rows
    for token, number in definition["model"]["vocab"].items():
        if number < rows:
            tokens[number], kinds[number] = token, PLAIN
    for added in definition.get("added_tokens") or []:
        if added["id"] < rows:
            tokens[added["id"]], kinds[added["id"]] = added["content"], SPECIAL if added["special"] else ADDED
    for number in model.end_ids:  # what is no special token is written as text, and would not end anything
        kinds[number] = SPECIAL if kinds[number] in (PLAIN, ADDED) else kinds[number]
    return tokens, kinds


def _merges(definition: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = definition["model"]["merges"]
    split = (pair.split(" ", 1) if isinstance(pair, str) else pair for pair in pairs)
    return [(left, right) for left, right in split]


def _scores(tokens: Sequence[str], merges: Sequence[tuple[str, str]]) -> list[float]:
    """The earlier a token is merged, the higher its score; what is never merged comes last."""
    first: dict[str, int] = {}
    for number, (left, right) in enumerate(merges):
        first.setdefault(left + right, number)
    order = {token: place for place, token in enumerate(first)}
    return [-float(order.get(token, len(order) + number)) for number, token in enumerate(tokens)]


def _is_of_pieces(definition: Mapping[str, Any]) -> bool:
    return definition["model"].get("type") == "BPE" and bool(definition["model"].get("byte_fallback"))


def _puts_space_before(definition: Mapping[str, Any]) -> bool:
    step = definition.get("pre_tokenizer") or {}
    return step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never"


def _ends(model: Outgoing) -> dict[str, Any]:
    turn = model.end_of_turn_id
    told: dict[str, Any] = {
        "bos_token_id": model.tokenizer.start_id,
        "eos_token_id": model.tokenizer.end_of_text_id,
        "padding_token_id": model.tokenizer.end_of_text_id,
        "add_bos_token": bool(model.tokenizer.beginning_ids),
        "add_eos_token": False,
    }
    others = [one for one in (turn, *model.end_ids) if one is not None and one != model.tokenizer.end_of_text_id]
    told |= {f"{name}_token_id": one for name, one in zip(("eot", "eom"), dict.fromkeys(others), strict=False)}
    return told | ({"eos_token_ids": list(model.end_ids)} if others else {})  # what Ollama reads


def _template(model: Outgoing) -> dict[str, Any]:
    return {"tokenizer.chat_template": model.chat_template} if model.chat_template is not None else {}


def _cannot(reason: str) -> ModelFileError:
    return ModelFileError(
        "a tokenizer that llama.cpp has", came=f"one that it has not: {reason}", remedy="export it to Hugging Face"
    )
