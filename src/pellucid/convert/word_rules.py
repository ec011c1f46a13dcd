"""How a byte-level tokenizer cuts words, found in its tokenizer.json, and the name by which llama.cpp knows the rule.

One and the same rule is spelled in many ways: `Digits`, a regular expression for digits, a step with GPT-2's rule in
it. Two rules are the same here if they cut alike every text of up to three characters out of thirty kinds of them,
and some thousand longer ones.

In: a `TextTokenizer`.  Out: a `Rule`, a name.  Used by: gguf_tokens, huggingface_writing.  Read next: gguf_tokens.py.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import tokenizers as library
from tokenizers import pre_tokenizers

from pellucid.convert.gguf_vocabulary import RULES, Rule
from pellucid.text import GPT2_SPLIT, TextTokenizer

KINDS_OF_CHARACTERS = "sSreRxXé中\u0301\u09021२²Ⅷ'’ſ \n\r\t\u00a0\u3000!.$_\u200d\U0001f600\0"
"""Letters that contractions are made of and others, of one case, two, none; marks; digits and other numbers; signs that
are punctuation and that are not; white space of every kind; joiners, pictures, controls."""

_LONGER = ("don't we'll I'VE they're it's", "a1b22c333 4444 55555", "x  y   z \n\n \r\n\t.", "!!?? ... -- a.b,c")


def words_of(tokenizer: TextTokenizer) -> Rule | None:
    """The rule of a byte-level tokenizer; None if it does something that no rule tells."""
    definition = json.loads(tokenizer.definition)
    model, normalizer = definition["model"], definition.get("normalizer")
    parts = _parts(definition.get("pre_tokenizer"), "pretokenizers")
    if model.get("type") != "BPE" or not parts or parts[-1].get("type") != "ByteLevel":
        return None
    composes = [part.get("type") for part in _parts(normalizer, "normalizers")]
    if composes not in ([], ["NFC"]):
        return None
    splits: list[str] = []
    for part in parts:
        match part:
            case {"type": "Split", "pattern": {"Regex": rule}, "behavior": "Isolated", "invert": False}:
                splits.append(rule)
            case {"type": "Digits", "individual_digits": alone}:
                splits.append(r"\p{N}" if alone else r"\p{N}+")
            case {"type": "ByteLevel", "add_prefix_space": False}:
                splits += [GPT2_SPLIT] if part.get("use_regex", True) else []
            case _:
                return None
    return Rule(tuple(splits), whole_words=bool(model.get("ignore_merges")), compose=bool(composes))


def name_of(rule: Rule) -> str | None:
    """The name of a rule in GGUF files; None if llama.cpp has none that cuts alike.

    Example:
        >>> name_of(Rule((GPT2_SPLIT,)))
        'gpt-2'
        >>> name_of(Rule((r"\\\\s+|\\\\S+",)))
    """
    alike = {
        name: one for name, one in RULES.items() if (one.whole_words, one.compose) == (rule.whole_words, rule.compose)
    }
    for name, one in alike.items():
        if one.splits == rule.splits:
            return name
    ours = _cuts(rule.splits)
    return next((name for name, one in alike.items() if _cuts(one.splits) == ours), None)


@lru_cache(maxsize=32)
def _cuts(splits: tuple[str, ...]) -> tuple[str, ...]:
    """Where a rule cuts some thousands of texts."""
    steps = [pre_tokenizers.Split(library.Regex(rule), "isolated") for rule in splits]
    cutter = pre_tokenizers.Sequence(steps)
    return tuple("|".join(word for word, _ in cutter.pre_tokenize_str(text)) for text in _samples())


def _samples() -> Iterator[str]:
    kinds = KINDS_OF_CHARACTERS
    for length in (1, 2, 3):
        yield from map("".join, itertools.product(kinds, repeat=length))
    for number, (first, second) in enumerate(itertools.product(kinds, repeat=2)):
        yield kinds[number % len(kinds)] + first + second + kinds[number * 7 % len(kinds)]
    yield from _LONGER


def _parts(step: Mapping[str, Any] | None, plural: str) -> list[Mapping[str, Any]]:
    if step is None:
        return []
    return step[plural] if step["type"] == "Sequence" else [step]
