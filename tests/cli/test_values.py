from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
import tyro

from pellucid.cli.arguments import parse
from pellucid.cli.values import Text, WholeNumber, unset, without_none
from pellucid.errors import UserError


@dataclass(frozen=True)
class Flags:
    """Everything a flag can be."""

    whole: WholeNumber = None
    number: float = 0.5
    text: Text = None
    switch: bool = False
    said: Annotated[bool | None, tyro.conf.arg(help="Said or not.")] = None
    word: Literal["one", "two"] | None = None
    many: tuple[int, ...] = ()


def test_words_become_what_their_types_say():
    words = [
        "--whole",
        "3",
        "--number",
        "1e3",
        "--text",
        "7",
        "--switch",
        "--said",
        "false",
        "--word",
        "two",
        "--many",
        "1",
        "--many",
        "2",
    ]
    assert parse(Flags, words, "test") == Flags(3, 1000.0, "7", True, False, "two", (1, 2))
    assert parse(Flags, [], "test") == Flags()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--whole 3.5", "Expected --whole to be a whole number, but got '3.5'"),
        ("--whole None", "Expected --whole to be a whole number, but got 'None'"),
        ("--number x", "Expected --number to be a number, but got 'x'"),
        ("--said perhaps", "Expected --said to be True or False, but got 'perhaps'"),
        ("--word three", "Expected --word to be one or two, but got 'three'"),
        ("--many x", "Expected --many to be a whole number, but got 'x'"),
        ("--text", "Expected a value after --text, but got none"),
    ],
)
def test_another_word_is_refused_in_a_sentence(words, sentence):
    with pytest.raises(UserError) as caught:
        parse(Flags, words.split(), "test")
    assert str(caught.value) == f"{sentence}: see pellucid test --help."


def test_help_speaks_of_what_can_be_said_and_never_of_none(capsys):
    with pytest.raises(SystemExit):
        parse(Flags, ["--help"], "test")
    said = capsys.readouterr().out
    for words in ("--whole N", "--number X", "--text TEXT", "--said True|False", "--word one|two"):
        assert words in said
    assert "None" not in said


def test_only_none_beside_one_type_is_left_out():
    assert without_none(int | None) is int
    assert without_none(int | str | None) == int | str | None


def test_a_default_that_is_chosen_elsewhere_is_told(capsys):
    told = dataclass(type("Told", (), {"__annotations__": {"size": unset(int, "How large.", 7)}, "size": None}))
    with pytest.raises(SystemExit):
        parse(told, ["--help"], "test")
    assert "How large. (default: 7)" in " ".join(capsys.readouterr().out.replace("│", "").split())
