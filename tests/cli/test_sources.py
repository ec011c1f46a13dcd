"""Which text a verb reads, from its flags."""

from pathlib import Path

import pytest

from pellucid.cli import main
from pellucid.cli.prepare_flags import PrepareFlags
from pellucid.cli.sources import sources_of, text_of, tokenizer_named
from pellucid.data import PreparedText, Sources
from pellucid.errors import UserError
from tests.train.small_run import small_text


@pytest.fixture(autouse=True)
def _prepared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text(small_text(), encoding="utf-8")
    Path("more.txt").write_text(small_text()[::-1], encoding="utf-8")
    assert main.run(["prepare", "words.txt", "--out", "d", "--tokenizer", "bpe", "--vocab-size", "270"]) == 0
    assert main.run(["prepare", "more.txt", "--out", "e", "--tokenizer", "d"]) == 0


def test_files_are_text_and_prepared_folders_are_prepared_text():
    assert isinstance(text_of(PrepareFlags(sources=("words.txt",))), Sources)
    assert isinstance(text_of(PrepareFlags(sources=("d",))), PreparedText)
    assert len(text_of(PrepareFlags(sources=("d", "e")), "0.7,0.3").folders) == 2


@pytest.mark.parametrize(
    ("flags", "weights", "sentence"),
    [
        ({"sources": ("d", "words.txt")}, None, "d, which is prepared, beside words.txt, which is not"),
        ({"sources": ("words.txt",)}, "1,2", "prepared folders, for --weights to mix"),
        ({"sources": ("d",), "held_out": 3}, None, "--held-out beside it"),
        ({"sources": ("d",), "encoding": "utf-8"}, None, "--encoding beside it"),
        ({"sources": ("d",), "text_column": "x"}, None, "--text-column beside it"),
        ({"sources": ("d",), "drop_boilerplate": True}, None, "--drop-boilerplate beside it"),
        ({"sources": ("d", "e")}, "1", "2 weights"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(flags, weights, sentence):
    with pytest.raises(UserError, match=sentence):
        text_of(PrepareFlags(**flags), weights)


def test_what_wants_text_does_not_take_prepared_folders():
    with pytest.raises(UserError, match="give the text it was made of"):
        sources_of(PrepareFlags(sources=("d",)))


def test_a_tokenizer_is_a_kind_or_a_path():
    assert [tokenizer_named(asked) for asked in (None, "char", "bpe", "d")] == [None, "characters", "bpe", "d"]
    with pytest.raises(UserError, match="where there is nothing"):
        tokenizer_named("no.json")
