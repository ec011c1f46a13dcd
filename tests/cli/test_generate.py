import io
import json
import os
import subprocess
import sys

import pytest

from pellucid.cli.main import run
from pellucid.cli.printable import printable
from pellucid.text import character_tokenizer, train_byte_pairs
from tests.saved_run import save_run

LETTERS = "to be, or not to be: that is the question.\n"


def save(path, tokenizer, **sizes):
    save_run(path, tokenizer, **sizes)
    return str(path)


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    return save(tmp_path_factory.mktemp("runs") / "letters", character_tokenizer([LETTERS]))


@pytest.fixture(scope="module")
def any_bytes(tmp_path_factory):
    return save(tmp_path_factory.mktemp("runs") / "größe", train_byte_pairs(["a"], 257), context_length=64)


@pytest.fixture
def generate(capsys):
    def call(*words):
        code = run(["generate", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_the_prompt_and_what_follows_are_printed_and_the_seed_is_told(letters, generate):
    code, out, err = generate(letters, "to be", "--max-tokens", "12", "--seed", "5")
    assert code == 0
    assert out.startswith("to be")
    assert out.endswith("\n")
    assert err.startswith("[seed 5 · ")


def test_json_says_the_same_with_all_facts(letters, generate):
    _, out, _ = generate(letters, "to be", "--max-tokens", "12", "--seed", "5")
    code, line, err = generate(letters, "to be", "--max-tokens", "12", "--seed", "5", "--json")
    said = json.loads(line)
    assert (code, err) == (0, "")
    assert "to be" + said["text"] == out.removesuffix("\n")
    assert said["prompt_tokens"] == 5
    assert said["completion_tokens"] <= 12
    assert said["seed"] == 5
    assert said["finish_reason"] in ("stop", "length")


def test_the_seed_told_writes_the_same_again(letters, generate):
    one, two = (json.loads(generate(letters, "to", "--json")[1]) for _ in range(2))
    assert one["text"] != two["text"]
    again = json.loads(generate(letters, "to", "--json", "--seed", str(one["seed"]))[1])
    assert again == one


def test_several_samples_are_told_apart(letters, generate):
    _, out, _ = generate(letters, "to", "--num-samples", "3", "--seed", "5", "--max-tokens", "4")
    assert [line for line in out.splitlines() if line.startswith("---")] == [
        "--- 1 of 3, seed 5",
        "--- 2 of 3, seed 6",
        "--- 3 of 3, seed 7",
    ]
    _, out, _ = generate(letters, "to", "--num-samples", "3", "--seed", "5", "--max-tokens", "4", "--json")
    assert [json.loads(line)["seed"] for line in out.splitlines()] == [5, 6, 7]


def test_the_prompt_may_come_from_standard_input(letters, generate, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"or not\n")))
    assert generate(letters, "-", "--max-tokens", "1")[1].startswith("or not")


def test_an_empty_prompt_works_for_any_vocabulary(tmp_path, generate):
    odd = save(tmp_path / "odd", character_tokenizer(["abc"]))  # no space, no newline
    assert generate(odd, "--max-tokens", "3")[0] == 0


def test_no_tokens_are_no_text(letters, generate):
    code, out, _ = generate(letters, "to", "--max-tokens", "0")
    assert (code, out) == (0, "to\n")


def test_it_stops_before_a_stop_text(letters, generate):
    ways = (json.loads(generate(letters, "to", "--seed", str(seed), "--json")[1]) for seed in range(20))
    whole = next(said for said in ways if len(said["text"]) > 5)
    stop = whole["text"][3:5]
    words = ("--seed", str(whole["seed"]), "--json", "--stop", "zzz", "--stop", stop)
    said = json.loads(generate(letters, "to", *words)[1])
    assert said["text"] == whole["text"][: whole["text"].index(stop)]
    assert said["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["d?Z"], "'?'"),
        (["to", "--temperature", "-1"], "temperature to be a number, 0 or more, but got -1.0"),
        (["to", "--temperature", "nan"], "temperature"),
        (["to", "--temperature", "hot"], "hot"),
        (["to", "--top-p", "1.5"], "top_p"),
        (["to", "--max-tokens", "-3"], "max_tokens"),
        (["to", "--max-token", "3"], "perhaps you meant --max-tokens"),
        (["to be or not to be"], "at most 16 tokens (the model's context_length), but got 18 tokens"),
    ],
)
def test_a_mistake_is_one_sentence_and_2(letters, generate, words, sentence):
    code, out, err = generate(letters, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path, generate):
    code, _, err = generate(str(tmp_path), "to")
    assert code == 2
    assert err.count("\n") == 1


def test_a_prompt_too_long_can_be_cut_and_that_is_told(letters, generate):
    code, _, err = generate(letters, "to be or not to be", "--truncate-prompt", "--max-tokens", "2")
    assert code == 0
    assert err.startswith("The first 2 tokens of the prompt were dropped; the model reads 16.\n")


def test_three_contexts_can_be_written(letters, generate):
    said = json.loads(generate(letters, "to", "--max-tokens", "48", "--temperature", "1", "--json", "--seed", "3")[1])
    assert said["completion_tokens"] == 48 or said["finish_reason"] == "stop"


def test_what_a_model_writes_never_commands_the_terminal(any_bytes, generate):
    for seed in range(3):
        words = ("\x1b[2J\r", "--max-tokens", "100", "--temperature", "5", "--seed", str(seed))
        _, out, _ = generate(any_bytes, *words)
        assert not [c for c in out if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
        assert out.startswith("␛[2J␍")


def test_markup_is_text(any_bytes, generate):
    assert generate(any_bytes, "[bold]x[/bold]", "--max-tokens", "1")[1].startswith("[bold]x[/bold]")


def test_any_locale_will_do(any_bytes):
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": ""}
    prompt = "größe 🙂 \u200b 中"
    words = ["generate", any_bytes, prompt.encode(), "--max-tokens", "1", "--json"]
    done = subprocess.run([sys.executable, "-m", "pellucid", *words], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout.decode("utf-8"))["prompt"] == prompt


HELP = """
import sys
from pellucid.cli.main import run
from pellucid.cli.printable import printable
run(["generate", "--help"])
print(sys.modules.keys() & {"torch", "numpy", "rich", "tokenizers"})
"""


def test_help_needs_no_torch():
    said = subprocess.run([sys.executable, "-c", HELP], capture_output=True, encoding="utf-8", check=True).stdout
    assert said.endswith("set()\n")
    for flag in ("max-tokens", "temperature", "top-k", "top-p", "min-p", "stop", "seed", "num-samples", "json"):
        assert f"--{flag}" in said


def test_what_is_written_is_text_and_raw_turns_that_off(any_bytes, generate):
    words = ("中文", "--max-tokens", "100", "--temperature", "3", "--seed", "1", "--json")
    assert "\ufffd" not in json.loads(generate(any_bytes, *words)[1])["text"]
    assert "\ufffd" in json.loads(generate(any_bytes, *words, "--raw")[1])["text"]


def test_a_text_is_shown_as_it_would_be_at_once_and_json_tells_what_it_is(any_bytes, generate):
    words = ("नमस्", "--max-tokens", "200", "--temperature", "2", "--seed", "3")
    said = json.loads(generate(any_bytes, *words, "--json")[1])
    _, shown, _ = generate(any_bytes, *words)
    assert shown == printable("नमस्" + said["text"]) + "\n"


def test_json_on_a_terminal_commands_nothing(any_bytes, generate):
    line = generate(any_bytes, "a\x9b31m\u202e", "--max-tokens", "1", "--json")[1]
    assert not set(line) & set("\x9b\u202e")
    assert json.loads(line)["prompt"] == "a\x9b31m\u202e"


def test_a_look_alike_of_an_unknown_letter_is_named(tmp_path, generate):
    persian = save(tmp_path / "persian", character_tokenizer(["علی"]))
    code, _, err = generate(persian, "علي")
    assert code == 2
    assert "ARABIC LETTER FARSI YEH" in err
    assert err.count("\n") == 1
