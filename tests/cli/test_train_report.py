"""What goes along with a run: its page, and trackers; neither may make it fail."""

import pytest

from pellucid.cli import main
from pellucid.cli.train_report import accompanied, asked_trackers, written_report
from pellucid.errors import TrainingStopped, UserError
from tests.cli.test_train_run import FLAGS
from tests.report.invented_run import finished, invented, step
from tests.train.small_run import cut_short, small_text


def test_the_page_is_written_when_the_run_is_over(tmp_path):
    run, said = invented(tmp_path / "run", step(1), finished()), []
    with accompanied(run.path, (), said.append, []):
        assert not run.report_path.exists()
    assert run.report_path.exists()
    assert said == [f"Report: {run.report_path}, a page for a browser."]


def test_a_run_whose_numbers_went_bad_has_its_page_too_and_stays_stopped(tmp_path):
    run, said = invented(tmp_path / "run", step(1)), []
    with pytest.raises(TrainingStopped), accompanied(run.path, (), said.append, []):
        raise TrainingStopped("numbers", came="none", remedy="lower the rates")
    assert run.report_path.exists()


def test_a_run_that_could_not_begin_has_none(tmp_path):
    said = []
    with pytest.raises(UserError), accompanied(tmp_path / "run", (), said.append, []):
        raise UserError("a text", came="none", remedy="give one")
    assert said == []
    assert not (tmp_path / "run").exists()


def test_a_page_that_cannot_be_written_is_a_line(tmp_path, monkeypatch):
    run = invented(tmp_path / "run", step(1))
    run.report_path.mkdir()
    assert written_report(run.path).startswith("No report was written (")
    assert written_report(tmp_path / "nowhere").endswith("the run itself is whole.")


def test_only_what_was_asked_for_listens(tmp_path):
    observers = []
    run = invented(tmp_path / "run", step(1))
    with accompanied(run.path, (), print, observers):
        assert observers == []
    with accompanied(run.path, ("tensorboard",), print, observers):
        assert len(observers) == 1


def test_a_tracker_that_is_none_is_refused_at_once():
    assert asked_trackers(None) == ()
    with pytest.raises(UserError, match="trackers among tensorboard, wandb, trackio, but got 'mlflow'"):
        asked_trackers("mlflow")


def test_the_command_writes_the_page_and_refuses_a_tracker_before_it_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cut_short(monkeypatch)
    (tmp_path / "words.txt").write_text(small_text(), encoding="utf-8")
    command = ["train", *FLAGS.split(), "words.txt", "--out", "run"]
    assert main.run([*command, "--track", "tensorbord"]) == 2
    assert not (tmp_path / "run").exists()
    assert main.run(command) == 0
    assert capsys.readouterr().out.rstrip().endswith("Report: run/report.html, a page for a browser.")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<title>run</title>" in page
    assert "could not be made" not in page
