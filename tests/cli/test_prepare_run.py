"""What `pellucid prepare` makes of flags, and what a person sees."""

import json
from pathlib import Path

import pytest

from pellucid.cli import main, prepare_run
from pellucid.data import PreparedFolder
from tests.train.small_run import small_text


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text(small_text(), encoding="utf-8")
    Path("more.txt").write_text(small_text()[::-1], encoding="utf-8")


@pytest.fixture
def prepare(capsys):
    def call(*words):
        code = main.run(["prepare", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_text_becomes_a_folder_and_its_card_is_shown(prepare):
    code, out, err = prepare("words.txt", "--out", "a folder")
    assert (code, err) == (0, "")
    card = PreparedFolder.open(Path("a folder")).card
    for line in (*card.text.sentences, "Next:  pellucid train 'a folder'"):
        assert line in out
    assert f"{card.training_tokens:,} to learn from" in out


def test_a_second_time_it_is_there_already(prepare):
    prepare("words.txt", "--out", "d")
    assert "It was there already: d." in prepare("words.txt", "--out", "d")[1]


def test_the_card_can_be_had_as_json_alone(prepare):
    _, out, _ = prepare("words.txt", "--out", "d", "--json")
    assert json.loads(out)["text"]["characters"] == len(small_text())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["words.txt"], "--out DIR"),
        (["words.txt", "--out", "d", "--processes", "0"], "processes of 1 or more"),
        (["words.txt", "--out", "d", "--tokenizer", "no.json"], "where there is nothing"),
        (["words.txt", "--out", "d", "--tokenizer", "bpe", "--vocab-size", "3"], "at least 257"),
        (
            ["words.txt", "--out", "d", "--vocab-size", "300", "--tokenizer", "char"],
            "vocab_size for the bpe tokenizer alone",
        ),
        (["no.txt", "--out", "d"], "does not exist"),
        (["words.txt", "--out", "."], "the one you are in"),
        (["words.txt", "--out", ".."], "a folder with other files in it"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing_behind(prepare, words, sentence):
    code, _, err = prepare(*words)
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["more.txt", "words.txt"]


def test_a_prepared_folder_is_not_prepared_again(prepare):
    prepare("words.txt", "--out", "d")
    assert "which is prepared already" in prepare("d", "--out", "e")[2]


def test_the_tokenizer_of_another_folder_is_taken(prepare):
    prepare("words.txt", "--out", "d", "--tokenizer", "bpe", "--vocab-size", "270")
    prepare("more.txt", "--out", "e", "--tokenizer", "d")
    one, other = (PreparedFolder.open(Path(name)).card for name in ("d", "e"))
    assert one.tokenizer == other.tokenizer


def test_whoever_stops_it_is_told_how_it_goes_on(prepare, monkeypatch):
    encode = prepare_run.PrepareLines.encoding

    def stopped(self, progress):
        encode(self, progress)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prepare_run.PrepareLines, "encoding", stopped)
        code, out, _ = prepare("words.txt", "--out", "d")
    assert code == 130
    assert "Stopped. What is done is kept: the same command goes on from there." in out
    assert not Path("d").exists()
    code, out, _ = prepare("words.txt", "--out", "d")
    assert code == 0
    assert "Going on with d.unfinished, where it was stopped." in out


def test_with_no_text_it_is_pythons_documentation(prepare):
    _, out, _ = prepare("--out", "d", "--tokenizer", "bpe", "--vocab-size", "300")
    assert "Text: Python's documentation" in out
    assert PreparedFolder.open(Path("d")).card.sources == ("Python's documentation",)


def test_a_name_acts_on_no_terminal(prepare):
    Path("words.txt").rename("wo\x1b[31mrds.txt")
    code, out, _ = prepare("wo\x1b[31mrds.txt", "--out", "d")
    assert code == 0
    assert "\x1b" not in out


def test_a_process_begins_only_where_there_is_work_for_it(monkeypatch):
    monkeypatch.setattr(prepare_run.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [prepare_run._processes(characters) for characters in (10, 9_000_000, 10**9)] == [1, 2, 8]
