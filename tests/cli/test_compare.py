import json
from pathlib import Path

import pytest

from pellucid.cli import main
from tests.compare.made_runs import made_run


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path / "base")
    made_run(tmp_path / "bare", model={"norm": "none"}, bits=(201.0, 211.5, 191.0, 206.5))


def pellucid_compare(*words):
    return main.run(["compare", *words])


def test_runs_are_set_side_by_side(capsys):
    assert pellucid_compare("base", "bare") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[0].split() == [
        *("bits/character", "spread", "runs", "best", "step", "tokens", "FLOPs", "seconds", "weights")
    ]
    assert "model.norm: rms; none" in said.out


def test_json_is_one_object(capsys):
    assert pellucid_compare("base", "bare", "--json") == 0
    assert json.loads(capsys.readouterr().out)["same_batches"] is True


def test_a_page_is_written_where_it_was_asked_for(capsys):
    assert pellucid_compare("base", "bare", "--out", "page.html") == 0
    assert "The same with curves: page.html" in capsys.readouterr().out
    assert Path("page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("out", ["page.txt", "nowhere/page.html", "base"])
def test_other_places_for_a_page_are_refused(out, capsys):
    assert pellucid_compare("base", "bare", "--out", out) == 2
    assert "ends in .html" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [(["base"], "two runs or more"), (["base", "nowhere"], "nothing there"), ([], "two runs or more")],
)
def test_a_mistake_is_a_sentence(given, said, capsys):
    assert pellucid_compare(*given) == 2
    assert said in capsys.readouterr().err


def test_names_cannot_act_on_the_terminal(tmp_path, capsys):
    made_run(tmp_path / "a\x1b[31m", model={"norm": "none"})
    assert pellucid_compare("base", "a\x1b[31m") == 0
    assert "\x1b" not in capsys.readouterr().out
