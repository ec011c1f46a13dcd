import io
import sys
from dataclasses import dataclass, field

import pytest
import tyro

from pellucid.cli.arguments import parse, text_argument, text_from_stdin
from pellucid.errors import GenerationError, UserError


@dataclass(frozen=True)
class Inner:
    """What is inside."""

    max_tokens: int = 200
    """How many tokens."""
    temperature: float = 0.8
    """How bold."""
    stop: tuple[str, ...] = ()
    """Where to stop."""

    def __post_init__(self):
        if self.temperature < 0:
            raise GenerationError("0 or more", came=f"temperature {self.temperature}: cold", remedy="choose another")


@dataclass(frozen=True)
class Flags:
    """Go on from a prompt."""

    run: tyro.conf.Positional[str]
    """A run folder."""
    prompt: tyro.conf.Positional[str] = ""
    """The beginning."""
    inner: tyro.conf.OmitArgPrefixes[Inner] = field(default_factory=Inner)
    json: bool = False
    """For machines."""


def test_flags_become_values():
    flags = parse(
        Flags, ["runs/x", "- a list", "--max-tokens", "3", "--stop", "a", "--stop", "b", "--json"], "generate"
    )
    assert flags == Flags("runs/x", "- a list", Inner(3, 0.8, ("a", "b")), True)


def test_a_dash_is_a_value():
    assert parse(Flags, ["runs/x", "-"], "generate").prompt == "-"


def test_what_follows_two_dashes_is_never_a_flag():
    assert parse(Flags, ["runs/x", "--", "--json"], "generate").prompt == "--json"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["x", "--max-token", "3"], r"--max-token, 3: perhaps you meant --max-tokens\."),
        (["x", "--max-token", "3", "--stp", "a"], r"--max-token, 3, --stp, a: perhaps you meant .*--max-tokens"),
        (["x", "--max-tokens", "hot"], r"^Expected --max-tokens to be a whole number, but got 'hot': see pellucid gen"),
        (["x", "--max-tokens"], r"^Expected a value after --max-tokens, but got none: see pellucid generate --help\."),
        ([], r"^Expected RUN after pellucid generate, but got nothing: see pellucid generate --help"),
        (["x", "--temperature", "-1"], r"^Expected 0 or more, but got temperature -1\.0: cold: choose another\.$"),
        (["x", "a", "b"], r"Expected what pellucid generate knows, but got b: see"),
    ],
)
def test_a_mistake_is_one_sentence(words, sentence, capsys):
    with pytest.raises(UserError, match=sentence) as caught:
        parse(Flags, words, "generate")
    assert "\n" not in str(caught.value)
    assert not set(str(caught.value)) & set("│╭╰─")
    assert capsys.readouterr() == ("", "")


def test_help_says_what_the_docstrings_say(capsys):
    with pytest.raises(SystemExit) as caught:
        parse(Flags, ["--help"], "generate")
    assert caught.value.code == 0
    said = capsys.readouterr().out
    for words in ("usage: pellucid generate", "Go on from a prompt.", "RUN", "PROMPT", "How many tokens.", "--stop"):
        assert words in said


def test_a_prompt_is_utf8_whatever_the_locale_made_of_it():
    assert text_argument("größe 🙂".encode().decode("ascii", "surrogateescape")) == "größe 🙂"
    assert text_argument("größe 🙂") == "größe 🙂"


def test_a_prompt_of_other_bytes_is_refused():
    with pytest.raises(UserError, match="UTF-8"):
        text_argument(b"caf\xe9".decode("ascii", "surrogateescape"))


@pytest.mark.parametrize(("given", "text"), [("größe\n", "größe"), ("a\n\n", "a\n"), ("", ""), ("a\r\n", "a\r")])
def test_standard_input_is_text_without_its_last_newline(monkeypatch, given, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()), encoding="ascii"))
    assert text_from_stdin() == text


def test_standard_input_that_is_not_utf8_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9")))
    with pytest.raises(UserError, match="standard input"):
        text_from_stdin()
