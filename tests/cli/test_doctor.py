"""`pellucid doctor`: lines, JSON, exit codes."""

import json

import pytest

import pellucid.doctor
from pellucid.cli import doctor
from pellucid.doctor import Finding

RIGHT = Finding(topic="cores", said="2 cores", so_what="good")
NOTE = Finding(topic="compiler", said="none found", so_what="steps run eagerly", state="note")
WRONG = Finding(topic="mps float32", said="logits differ by 0.2 of the largest", so_what="do not train", state="wrong")


@pytest.fixture
def finding(monkeypatch):
    """Makes the machine one of which there is only this to say."""

    def are(*findings):
        monkeypatch.setattr(pellucid.doctor, "examine", lambda folder, quick: iter(findings))

    return are


def test_every_finding_has_a_line_that_says_what_and_so_what(finding, capsys):
    finding(RIGHT, NOTE)
    assert doctor.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [f"✓ {'cores':<22} 2 cores: good.", f"· {'compiler':<22} none found: steps run eagerly."]
    assert lines[-1].startswith("Everything computes right.")


def test_something_wrong_is_named_again_and_exits_with_1(finding, capsys):
    finding(RIGHT, WRONG)
    assert doctor.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "Wrong: mps float32."


@pytest.mark.parametrize(("findings", "code"), [((RIGHT, NOTE), 0), ((WRONG,), 1)])
def test_json_is_all_of_standard_output(finding, capsys, findings, code):
    finding(*findings)
    assert doctor.main(["--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["right"] is (code == 0)
    assert [one["topic"] for one in told["findings"]] == [one.topic for one in findings]


def test_quick_is_handed_on(monkeypatch):
    asked = []
    monkeypatch.setattr(pellucid.doctor, "examine", lambda folder, quick: asked.append(quick) or iter(()))
    doctor.main(["--quick"])
    assert asked == [True]


def test_names_from_the_machine_are_made_printable(finding, capsys):
    finding(Finding(topic="devices", said="cuda (\x1b[31mred)", so_what="good"))
    doctor.main([])
    assert "\x1b" not in capsys.readouterr().out
