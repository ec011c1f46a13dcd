"""`pellucid report RUN`."""

import json
from pathlib import Path

import pytest

from pellucid.cli import main
from tests.report.invented_run import finished, invented, step


@pytest.fixture
def run(tmp_path):
    return invented(tmp_path / "book-01", step(1), finished()).path


def test_it_writes_the_page_and_says_where(run, capsys):
    assert main.run(["report", str(run)]) == 0
    assert "<title>book-01</title>" in (run / "report.html").read_text(encoding="utf-8")
    said = capsys.readouterr().out
    assert said.startswith(f"Written: {run}/report.html, ")
    assert said.strip().endswith(f"file://{run}/report.html")


def test_it_writes_elsewhere_and_says_so_to_machines(run, tmp_path, capsys):
    assert main.run(["report", str(run), "--out", str(tmp_path / "نص.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert Path(told["report"]).stat().st_size == told["bytes"]
    assert not (run / "report.html").exists()


@pytest.mark.parametrize("words", [[], ["nowhere"], ["--outt", "x"]])
def test_a_mistake_is_a_sentence(words, capsys):
    assert main.run(["report", *words]) == 2
    assert capsys.readouterr().err.startswith("Expected ")


def test_a_place_that_cannot_be_written_is_a_sentence(run, capsys):
    assert main.run(["report", str(run), "--out", "/nowhere/x.html"]) == 2
    assert "/nowhere/x.html" in capsys.readouterr().err
