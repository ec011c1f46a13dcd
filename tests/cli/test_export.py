import sys

import pytest

from pellucid.cli.main import run


def test_what_is_missing_is_named(capsys):
    assert run(["export", "runs/x"]) == 2
    assert "Expected --out after pellucid export, but got nothing" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--dtype", "int8"], ["--format", "onnx"], ["--quantize", "q5_k"]])
def test_an_unknown_word_is_refused_with_those_that_are_known(words, capsys):
    assert run(["export", "runs/x", "--out", "y", *words]) == 2
    said = capsys.readouterr().err
    assert words[1] in said
    assert " or " in said


def test_the_first_line_comes_before_torch(tmp_path, capsys):
    assert run(["export", str(tmp_path / "none"), "--out", str(tmp_path / "x")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("pellucid export: opening the model")
    assert "where there is nothing" in said[1]
    assert sys.modules["torch"]
