import io
import itertools
import json
import os
import subprocess
import sys

import pytest

from pellucid.cli.main import run
from pellucid.cli.tokens import COLOURS, painted
from pellucid.text import character_tokenizer, spans, train_byte_pairs

TEXT = "to be, or not\n  to be 癖\n"


@pytest.fixture
def book(tmp_path):
    (tmp_path / "book.txt").write_bytes(TEXT.encode())
    return str(tmp_path / "book.txt")


@pytest.fixture
def tokens(capsys):
    def call(*words):
        code = run(["tokens", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_tokens_are_told_apart_line_by_line(book, tokens):
    code, out, err = tokens(book, "--tokenizer", "char")
    assert code == 0
    assert out == "t│o│·│b│e│,│·│o│r│·│n│o│t│↵\n·│·│t│o│·│b│e│·│癖│↵\n"
    assert err == "[24 characters are 24 tokens, 1.00 characters a token · vocabulary of 11]\n"


def test_halves_of_characters_are_shown_as_bytes(book, tokens):
    _, out, _ = tokens(book)
    assert "⟨E7⟩│⟨99⟩│⟨96⟩" in out
    assert "\ufffd" not in out


def test_the_script_of_the_text_decides_unless_something_is_asked_for(tmp_path, tokens):
    many_letters = "".join(chr(0x4E00 + number * number % 809) for number in range(3_000))
    (tmp_path / "a.txt").write_text(many_letters, encoding="utf-8")
    _, out, err = tokens(str(tmp_path / "a.txt"))
    assert out == "│".join(many_letters[:2000]) + "\n"
    assert "1.00 characters a token · vocabulary of 406, since of 512 byte pairs" in err
    assert "vocabulary of 512, since of 512," in tokens(str(tmp_path / "a.txt"), "--tokenizer", "bpe")[2]
    assert tokens(str(tmp_path / "a.txt"), "--vocab-size", "300")[2].endswith("vocabulary of 300]\n")


def test_words_keep_their_marks_and_joiners(tmp_path, tokens):
    (tmp_path / "a.txt").write_text("नमस्ते می\u200cخواهم cafe\u0301 " * 60, encoding="utf-8")
    _, out, _ = tokens(str(tmp_path / "a.txt"), "--characters", "28", "--vocab-size", "512")
    assert out == "नमस्ते│·می│⟨U+200C⟩خواهم│·cafe\u0301│·नमस्ते\n"


def test_bpe_learns_from_the_text_up_to_the_size_asked_for(book, tokens):
    few, many = (int(tokens(book, "--vocab-size", size)[2].split()[3]) for size in ("257", "300"))
    assert few == len(TEXT.encode())
    assert many < few


@pytest.mark.parametrize("make", [lambda: character_tokenizer([TEXT]), lambda: train_byte_pairs([TEXT], 260)])
def test_a_tokenizer_that_exists_is_taken_from_its_file_or_folder(book, tokens, tmp_path, make):
    tokenizer = make()
    (tmp_path / "run").mkdir()
    tokenizer.save(tmp_path / "run")
    for path in (tmp_path / "run", tmp_path / "run" / "tokenizer.json"):
        lines = tokens(book, "--tokenizer", str(path), "--json")[1].splitlines()
        assert [json.loads(line)["id"] for line in lines] == tokenizer.encode(TEXT).tolist()


def test_json_gives_bytes_that_join_to_the_text(book, tokens):
    lines = tokens(book, "--json")[1].splitlines()
    assert b"".join(bytes.fromhex(json.loads(line)["bytes"]) for line in lines) == TEXT.encode()


def test_the_beginning_is_shown_unless_more_is_asked_for(tmp_path, tokens):
    (tmp_path / "long.txt").write_text("ab" * 100_000)
    out, err = tokens(str(tmp_path / "long.txt"), "--tokenizer", "char")[1:]
    assert out == "│".join("ab" * 1000) + "\n"
    assert "the first 2,000 of 200,000 characters" in err
    assert len(tokens(str(tmp_path / "long.txt"), "--tokenizer", "char", "--characters", "0")[1]) == 400_000
    assert tokens(str(tmp_path / "long.txt"), "--tokenizer", "char", "--characters", "3")[1] == "a│b│a\n"


def test_the_text_may_come_from_standard_input(tokens, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ab\n")))
    assert tokens("-", "--tokenizer", "char")[1] == "a│b\n"


@pytest.mark.parametrize(
    "text", ["plain text, then \x1b[2J and more plain text", "a\r\x9bb", "\u202eabc", "[bold]x[/bold] :smile:"]
)
def test_nothing_in_the_text_acts_on_the_terminal(tmp_path, tokens, text):
    (tmp_path / "attack.txt").write_bytes(text.encode())
    code, out, _ = tokens(str(tmp_path / "attack.txt"), "--tokenizer", "char")
    assert code == 0
    assert not [c for c in out if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"]
    assert painted(spans(character_tokenizer([text]), text)).plain.isprintable()


def test_a_special_token_in_the_text_is_text(tmp_path, tokens):
    (tmp_path / "a.txt").write_text("<|endoftext|>")
    assert tokens(str(tmp_path / "a.txt"), "--tokenizer", "char")[1] == "│".join("<|endoftext|>") + "\n"


def test_neighbours_have_different_colours():
    tokenizer = character_tokenizer([TEXT])
    text = painted(spans(tokenizer, TEXT))
    styles = [str(span.style) for span in text.spans]
    assert set(styles) == set(COLOURS)
    assert all(one != other for one, other in itertools.pairwise(styles))
    assert text.plain == "to·be,·or·not↵\n··to·be·癖↵\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.txt"], "nothing.txt"),
        (["{book}", "--tokenizer", "nothing"], "tokenizer.json at nothing"),
        (["{book}", "--vocab-size", "3"], "at least 257"),
        (["{book}", "--characters", "-1"], "characters to be 0 or more"),
        ([], "FILE"),
    ],
)
def test_a_mistake_is_one_sentence_and_2(book, tokens, words, sentence):
    code, out, err = tokens(*(word.format(book=book) for word in words))
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_characters_a_tokenizer_does_not_know_are_named(book, tokens, tmp_path):
    character_tokenizer([TEXT.replace("癖", "")]).save(tmp_path / "tokenizer.json")
    code, _, err = tokens(book, "--tokenizer", str(tmp_path))
    assert code == 2
    assert "癖" in err


def test_any_locale_will_do(book):
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C"}
    words = [sys.executable, "-m", "pellucid", "tokens", book, "--tokenizer", "char"]
    done = subprocess.run(words, env=env, capture_output=True, check=True)
    assert "癖" in done.stdout.decode("utf-8")


def test_a_document_is_read_as_training_reads_it(tmp_path, tokens):
    (tmp_path / "a.html").write_bytes(b"<p>ab &amp; c")
    (tmp_path / "b.csv").write_bytes(b"id,said,meant\n1,What is it that you want?,Go away at once if you can.\n")
    (tmp_path / "c.txt").write_bytes("да".encode("cp1251"))
    assert tokens(str(tmp_path / "a.html"), "--tokenizer", "char")[1] == "a│b│·│&│·│c│↵\n"
    assert tokens(str(tmp_path / "c.txt"), "--tokenizer", "char", "--encoding", "cp1251")[1] == "д│а\n"
    code, _, err = tokens(str(tmp_path / "b.csv"), "--tokenizer", "char")
    assert (code, "--text-column" in err) == (2, True)
    said = tokens(str(tmp_path / "b.csv"), "--tokenizer", "char", "--text-column", "said")[1]
    assert said.replace("│", "") == "What·is·it·that·you·want?\n"


def test_boilerplate_is_left_out_on_request(tmp_path, tokens):
    start = "*** START OF THE PROJECT GUTENBERG EBOOK X ***\n"
    (tmp_path / "a.txt").write_text(start + "the text", encoding="utf-8")
    assert "G" in tokens(str(tmp_path / "a.txt"), "--tokenizer", "char")[1]
    assert "G" not in tokens(str(tmp_path / "a.txt"), "--tokenizer", "char", "--drop-boilerplate")[1]
