"""What a run left behind is read as far as it can be read."""

import math

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.report.record import COLUMNS, number, read_record, text
from tests.report.invented_run import FACTS, evaluated, finished, invented, invented_record, step


def test_a_whole_run_is_read(record):
    assert record.name == "words-01"
    assert len(record.steps) == record.last_step == 12
    assert [event["step"] for event in record.all("Evaluated")] == [4, 8, 12]
    assert record.fact("data", "documents") == 1
    assert record.unread == 0


def test_lines_that_are_no_events_are_counted_and_passed_over(tmp_path):
    folder = invented(tmp_path / "run", step(1), step(2))
    whole = folder.metrics_path.read_bytes()
    bad = [
        b'{"event": "StepDone", "step": 3, "tra',
        b"\n",
        b"[1, 2]\n",
        b"\xff\xfe\n",
        b"\n",
        b'{"step": 4}\n',
        b'{"event": 5}\n',
    ]
    folder.metrics_path.write_bytes(whole + b"".join(bad) + whole)
    record = read_record(folder)
    assert list(record.steps["step"]) == [1, 2, 1, 2]
    assert record.unread == 5


def test_a_line_nested_too_deep_is_passed_over(tmp_path):
    folder = invented(tmp_path / "run", step(1))
    with folder.metrics_path.open("ab") as file:
        file.write(b"[" * 100_000 + b"\n")
    assert read_record(folder).unread == 1


def test_a_field_of_the_wrong_kind_is_a_gap(tmp_path):
    record = invented_record(
        tmp_path / "run",
        step(1, train=None, learning_rates=None),
        step(2, gradient_norm="x", learning_rates={"new": 1}),
    )
    assert all(len(record.steps[name]) == 2 for name in COLUMNS)
    assert math.isnan(record.steps["train"][0])
    assert math.isnan(record.steps["gradient_norm"][1])
    assert math.isnan(record.steps.rates["new"][0])
    assert record.steps.rates["new"][1] == 1


def test_skipped_steps_are_remembered_with_their_reason(tmp_path):
    record = invented_record(tmp_path / "run", step(1), step(2, skipped=True, not_finite="the output of blocks.0"))
    assert record.steps.skipped == [(2, "the output of blocks.0")]


def test_a_run_without_metrics_has_none(tmp_path):
    folder = invented(tmp_path / "run")
    folder.metrics_path.unlink()
    record = read_record(folder)
    assert (len(record.steps), record.last_step, record.last("Finished")) == (0, 0, {})


def test_the_last_step_is_the_ends_own_or_the_latest_done(tmp_path):
    assert invented_record(tmp_path / "a", step(7), evaluated(7)).last_step == 7
    assert invented_record(tmp_path / "b", step(7), finished(step=9)).last_step == 9


def test_a_run_without_a_name_is_called_after_its_folder(tmp_path):
    assert invented_record(tmp_path / "other", facts={}).name == "other"
    assert invented_record(tmp_path / "other", facts=FACTS).name == "book-01"


def test_an_address_that_leads_nowhere_is_none(tmp_path):
    record = invented_record(tmp_path / "run", facts={"data": "text"})
    assert record.fact("data", "name") is None
    assert record.fact("plan", "steps") is None


@pytest.mark.parametrize(("value", "read"), [(True, -1), ("3", -1), (None, -1), (1e301, -1), (3, 3.0), (-2.5, -2.5)])
def test_only_numbers_are_numbers(value, read):
    assert number(value, -1) == read


def test_only_text_is_text():
    assert [text("a"), text(None), text(3)] == ["a", "", ""]


def test_a_folder_is_read_while_it_is_locked(run):
    with run.lock():
        assert read_record(RunFolder.open(run.path)).last_step == 12
