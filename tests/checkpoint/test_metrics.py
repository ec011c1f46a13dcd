import json
import math

import pytest

from pellucid.checkpoint.metrics import append_line, cut_to, read_lines


def test_one_object_a_line_seen_at_once(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for step in range(3):
        append_line(path, {"step": step, "text": "naïve\n🙂"})
        assert len(read_lines(path)) == step + 1
    assert path.read_text(encoding="utf-8").count("\n") == 3
    assert read_lines(path)[2] == {"step": 2, "text": "naïve\n🙂"}


def test_what_json_lacks_becomes_null(tmp_path):
    append_line(tmp_path / "m", {"loss": math.nan, "rates": [math.inf, (1.5, -math.inf)]})
    line = (tmp_path / "m").read_text()
    assert json.loads(line, parse_constant=pytest.fail) == {"loss": None, "rates": [None, [1.5, None]]}


@pytest.mark.parametrize("half", [b'{"st', b'{"step": 2}', b"\xf0\x9f"])
def test_a_line_cut_short_by_a_kill_is_left_out_and_then_written_over(tmp_path, half):
    path = tmp_path / "m"
    append_line(path, {"step": 1})
    path.write_bytes(path.read_bytes() + half)
    assert read_lines(path) == [{"step": 1}]
    append_line(path, {"step": 2})
    assert read_lines(path) == [{"step": 1}, {"step": 2}]


def test_a_file_of_half_a_line_alone_is_empty(tmp_path):
    (tmp_path / "m").write_bytes(b'{"step"')
    assert read_lines(tmp_path / "m") == []
    append_line(tmp_path / "m", {})
    assert read_lines(tmp_path / "m") == [{}]


def test_events_after_a_checkpoint_can_be_forgotten(tmp_path):
    path = tmp_path / "m"
    append_line(path, {"step": 1})
    length = path.stat().st_size
    append_line(path, {"step": 2})
    cut_to(path, length)
    assert read_lines(path) == [{"step": 1}]


def test_no_file_is_no_events(tmp_path):
    assert read_lines(tmp_path / "m") == []


@pytest.mark.parametrize("foreign", [b"what somebody wrote\n", b"\xff\xfe\n", b"\n", b"3\n"])
def test_what_is_no_event_is_left_out(tmp_path, foreign):
    append_line(tmp_path / "m", {"step": 1})
    (tmp_path / "m").write_bytes((tmp_path / "m").read_bytes() + foreign)
    append_line(tmp_path / "m", {"step": 2})
    assert read_lines(tmp_path / "m") == [{"step": 1}, {"step": 2}]
