"""`pellucid import` makes a run of each kind of model, and says in a sentence what it cannot open."""

import json
import pickle

import pytest
import torch

from pellucid.cli.main import run
from pellucid.loading import load
from tests.convert.test_run_import import folder_of
from tests.convert.test_torch_checkpoint import SIZES, TOKENIZER, course_weights
from tests.convert.written_gguf import write_llama


def test_each_kind_becomes_a_run_that_generates(tmp_path, capsys):
    torch.save(course_weights(), tmp_path / "course.pt")
    (tmp_path / "course.json").write_text(json.dumps(SIZES))
    TOKENIZER.save(tmp_path / "some tokenizer.json")
    kinds = {
        "a Hugging Face folder": [str(folder_of(tmp_path / "hf model"))],
        "a GGUF file": [str(write_llama(tmp_path / "möbius.gguf"))],
        "a checkpoint of CS336": [str(tmp_path / "course.pt"), "--tokenizer", str(tmp_path / "some tokenizer.json")],
    }
    for number, (kind, words) in enumerate(kinds.items()):
        out = tmp_path / f"run number {number}"
        assert run(["import", *words, "--out", str(out)]) == 0
        said = capsys.readouterr().out
        assert kind in said
        assert f"pellucid generate '{out}'" in said
        assert run(["generate", str(out), "ab", "--max-tokens", "3"]) == 0
        capsys.readouterr()


def test_json_tells_the_same(tmp_path, capsys):
    assert run(["import", str(write_llama(tmp_path / "a.gguf")), "--out", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["run"], told["from"]) == (str(tmp_path / "run"), "a GGUF file")
    assert load(tmp_path / "run").facts["command"][:2] == ["pellucid", "import"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "where there is nothing"),
        ("run", "a model of ours"),
        ("odd.bin", "a file"),
        ("bad.pt", "holds code"),
    ],
)
def test_what_cannot_be_imported_is_told_in_a_sentence(tmp_path, capsys, name, words):
    run(["import", str(write_llama(tmp_path / "a.gguf")), "--out", str(tmp_path / "run")])
    (tmp_path / "odd.bin").write_bytes(pickle.dumps(1))
    (tmp_path / "bad.pt").write_bytes(pickle.dumps(print))
    capsys.readouterr()
    assert run(["import", str(tmp_path / name), "--out", str(tmp_path / "new")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_place_that_is_taken_is_told_before_anything_is_read(tmp_path, capsys):
    assert run(["import", "nowhere", "--out", str(tmp_path)]) == 2
    assert "nothing yet at" in capsys.readouterr().err
