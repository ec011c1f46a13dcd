import importlib.util
import json
import os

import numpy as np
import pytest

import pellucid
from pellucid.cli.export_run import passage_of
from pellucid.cli.main import run
from pellucid.text import character_tokenizer, train_byte_pairs
from tests.saved_run import save_run

TEXT = "to be, or not to be: that is the question.\n"


def save(path, tokenizer, **sizes):
    save_run(path, tokenizer, **{"num_heads": 2, "num_layers": 2, "context_length": 40, **sizes})
    return str(path)


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch):
    """Others take seconds to start; they are asked in tests/convert and tests/whole."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None)


@pytest.fixture
def export(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code = run(["export", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_run_becomes_a_folder_that_writes_the_same(export):
    save("mine", train_byte_pairs([TEXT * 9], 300))
    code, out, err = export("mine", "--out", "new/hf")
    assert code == 0
    assert "Writing it as Qwen3 in float32." in err
    assert out.splitlines()[0].startswith("Equal: pellucid itself reads the same weights to the last bit")
    assert "nobody" not in out
    assert out.splitlines()[-1].startswith("Done: new/hf, 5 files")
    said = [pellucid.load(path).generate("to be", seed=1, max_tokens=12, raw=True) for path in ("mine", "new/hf")]
    assert said[0] == said[1]
    assert os.listdir("new") == ["hf"]


def test_json_says_it_in_one_line(export):
    save("mine", character_tokenizer([TEXT]))
    code, out, err = export("mine", "--out", "hf", "--dtype", "bfloat16", "--json")
    said = json.loads(out)
    assert (code, err) == (0, "")
    assert (said["path"], said["family"], said["dtype"]) == ("hf", "Qwen3", "bfloat16")
    assert said["compared"][0]["difference"] > 0


def test_a_model_of_no_family_is_refused_with_the_reason(export):
    save("mine", character_tokenizer([TEXT]), feed_forward="relu2")
    code, _, err = export("mine", "--out", "hf")
    assert code == 2
    assert "feed_forward=relu2 (Qwen3, the nearest, has swiglu)" in err
    assert not os.path.exists("hf")


def test_flags_that_contradict_each_other_are_refused(export):
    save("mine", character_tokenizer([TEXT]))
    assert "--format gguf" in export("mine", "--out", "hf", "--quantize", "q8_0")[2]
    said = export("mine", "--out", "x.gguf", "--format", "gguf", "--quantize", "q8_0", "--dtype", "float16")[2]
    assert "leave one of them out" in said


def test_the_passage_is_python_s_documentation_in_letters_that_the_model_knows(tmp_path):
    tokenizer = character_tokenizer([TEXT])
    loaded = pellucid.load(save(tmp_path / "mine", tokenizer))
    passage = passage_of(loaded)
    assert passage.what == "Python's documentation"
    assert set(tokenizer.decode(passage.ids)) <= set(TEXT)


def test_of_a_script_that_no_documentation_has_all_tokens_are_taken(tmp_path):
    loaded = pellucid.load(save(tmp_path / "mine", character_tokenizer(["中文字"])))
    passage = passage_of(loaded)
    assert passage.what == "all its tokens in turn"
    assert np.unique(passage.ids).tolist() == [0, 1, 2, 3]
