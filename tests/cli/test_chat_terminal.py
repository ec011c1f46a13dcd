import builtins
import sys

import pytest

from pellucid.cli.chat_terminal import Terminal, written
from pellucid.generate import Turn, Writing
from pellucid.generation_config import GenerationConfig
from pellucid.loading import load
from pellucid.text import Message
from tests.cli.chat_models import saved

END, STOP = EOFError, KeyboardInterrupt


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return load(saved(tmp_path_factory.mktemp("runs") / "chats", context_length=128))


@pytest.fixture
def person(loaded, monkeypatch, capsys):
    """What the screen shows when somebody types these lines, and the exit code."""
    from pellucid.cli.chat_run import begun  # it imports chat_terminal

    def at(*typed, show_ids=False, **config):
        lines = iter([*typed, END])

        def line(prompt):
            sys.stdout.write(prompt)
            given = next(lines)
            if isinstance(given, str):
                sys.stdout.write(f"{given!a}\n" if "\udce9" in given else f"{given}\n")
                return given
            raise given

        monkeypatch.setattr(builtins, "input", line)
        monkeypatch.setenv("NO_COLOR", "1")
        config = {"max_tokens": 4, "seed": 1, **config}
        at.talk = begun(loaded, GenerationConfig(**config))
        code = Terminal(at.talk, name="a model", show_ids=show_ids).run()
        return capsys.readouterr().out, code

    return at


def test_a_question_an_answer_and_good_bye(person):
    out, code = person("hello", "", "   ")
    assert out.startswith("a model · 128 tokens of context · seed 1 · /help · Ctrl-D leaves\n> hello\n")
    assert out.endswith("\n\n> \n>    \n> \n")
    assert code == 0


def test_commands_are_told_and_obeyed(person):
    out, _ = person("/help", "hello", "/reset", "/again")
    assert "/system TEXT" in out
    assert "Forgotten.\n" in out
    assert "Nothing was asked yet." in out
    out, _ = person("/system be kind", "/system", "/sytem", "/")
    assert "From now on the model is told this first." in out
    assert "It is told nothing first." in out
    assert "There is no command /sytem" in out


def test_again_asks_the_same_anew_with_another_seed(person):
    person("hello", "/again", max_tokens=9)
    assert person.talk.messages[0].content == "hello"
    assert len(person.talk.messages) == 2


def test_a_path_is_a_message(person):
    out, _ = person("/etc/passwd")
    assert "no command" not in out


def test_a_message_may_have_several_lines(person):
    person('"""hello', "", 'goodbye"""')
    assert person.talk.messages[0].content == "hello\n\ngoodbye"
    person('"""hello"""')
    assert person.talk.messages[0].content == "hello"


def test_ctrl_c_at_the_prompt_asks_once(person):
    assert person(STOP, STOP)[1] == 130
    out, code = person(STOP, "hello", STOP)
    assert out.count("Ctrl-C once more leaves.") == 2
    assert code == 0


def test_ctrl_c_ends_an_answer_and_not_the_program(person, monkeypatch):
    def interrupted(turn):
        for number, text in enumerate(written(turn)):
            if number == 1:
                raise KeyboardInterrupt
            yield text

    monkeypatch.setattr("pellucid.cli.chat_terminal.written", interrupted)
    out, code = person("hello", "hello", STOP, max_tokens=40, temperature=3.0)
    assert "Ended by Ctrl-C; once more leaves." in out
    assert code == 130


def test_a_mistake_is_told_and_the_chat_goes_on(person):
    out, code = person("é" * 200, "hello")
    assert "fits into the model's context of 128 tokens" in out
    assert len(person.talk.messages) == 2
    assert code == 0
    out, _ = person("caf\udce9")
    assert "Expected a prompt in UTF-8" in out


def test_why_an_answer_ends_is_told(person):
    out, _ = person("hello", max_tokens=1, temperature=3.0)
    assert "The answer ends here after 1 token: --max-tokens allows more." in out or "context" not in out
    out, _ = person("hello", max_tokens=1000, temperature=0.0)
    assert "The answer ends here because the context is full: /reset makes room." in out


def test_ids_are_shown_on_request(person):
    assert " ids: " in person("hello", show_ids=True)[0]
    assert " ids: " not in person("hello")[0]


def test_nothing_in_an_answer_acts_on_the_terminal(loaded, monkeypatch):
    chunks = [(0, chunk) for chunk in (" ", "\n a\x1b[2J", "\u202e", "b\n")]
    monkeypatch.setattr(Writing, "whole_graphemes", lambda _: iter(chunks))
    turn = Turn(Message("user", ""), Writing(loaded.model, loaded.tokenizer, ["a"], GenerationConfig()))
    assert "".join(written(turn)) == "a␛[2J⟨U+202E⟩b\n"
