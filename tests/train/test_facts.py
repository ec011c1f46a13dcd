import sys

import torch

from pellucid.text import character_tokenizer
from pellucid.train import facts
from tests.train.small_run import small_sources


def test_the_machine_is_told_by_everything_that_can_change_a_digit():
    environment = facts.environment(torch.device("cpu"))
    assert environment["torch"] == torch.__version__
    assert environment["threads"] == torch.get_num_threads()
    assert environment["instruction_set"] == torch.backends.cpu.get_cpu_capability()
    assert environment["device"] == "cpu"
    for name in ("pellucid", "python", "numpy", "tokenizers", "safetensors", "system", "deterministic_algorithms"):
        assert environment[name] is not None


def test_what_differs_is_said_and_what_does_not_is_not():
    assert facts.changed({"a": 1, "b": 2}, {"a": 1, "b": 2}) == ""
    assert (
        facts.changed({"a": 1, "b": 2}, {"a": 3, "b": 4, "c": 5})
        == "a is 3 and was 1, b is 4 and was 2, c is 5 and was None"
    )


def test_the_text_is_told_by_its_hash():
    sources = small_sources()
    told = facts.of_sources(sources, "words")
    assert told == {
        "name": "words",
        "fingerprint": sources.fingerprint,
        "characters": 3000,
        "utf8_bytes": 3000,
        "documents": 1,
        "alphabet": sources.alphabet,
    }


def test_the_tokenizer_is_told_by_its_hash():
    one, other = character_tokenizer(["ab"]), character_tokenizer(["ac"])
    assert facts.of_tokenizer(one)["vocab_size"] == facts.of_tokenizer(other)["vocab_size"] == 3
    assert facts.of_tokenizer(one)["fingerprint"] != facts.of_tokenizer(other)["fingerprint"]


def test_the_command_is_told_as_it_was_typed(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["anything", "train", "größe.txt", "caf\udce9.txt"])
    assert facts.command() == ["pellucid", "train", "größe.txt", r"caf\xe9.txt"]
