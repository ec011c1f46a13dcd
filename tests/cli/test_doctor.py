"""`pellucid doctor` prints a line a finding and tells by its exit code."""

import json

from pellucid.cli import doctor
from pellucid.doctor import Finding


def test_json_lines_hold_every_finding(capsys, monkeypatch):
    findings = [Finding("cores", "2", "enough"), Finding("logits on cpu", "1.0 from float32", "wrong", good=False)]
    monkeypatch.setattr(doctor, "examine", lambda compiled: iter(findings))
    assert doctor.main(["--json"]) == 1
    assert [json.loads(line)["good"] for line in capsys.readouterr().out.splitlines()] == [True, False]


def test_all_well_is_said_and_is_exit_code_0(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda compiled: iter([Finding("cores", "[b]2[/b]", "enough")]))
    assert doctor.main([]) == 0
    said = capsys.readouterr().out
    assert "[b]2[/b]" in said
    assert said.endswith("All is well.\n")
