"""The doctor finds what is wrong, and says nothing is where nothing is."""

import torch

from pellucid import doctor
from pellucid.doctor import examine


def test_a_sound_machine_gets_no_bad_finding_about_its_numbers():
    findings = list(examine(compiled=False))
    assert all(finding.good for finding in findings if finding.name.startswith("logits"))
    assert {"versions", "cores", "devices", "compiler", "instructions"} <= {finding.name for finding in findings}


def test_a_way_that_gives_other_numbers_is_found():
    expected = torch.zeros(2, 3)
    assert not doctor._compared("x", "float32", lambda: expected + 0.01, expected).good
    assert doctor._compared("x", "bfloat16", lambda: expected + 0.01, expected).good


def test_numbers_that_are_not_numbers_are_found():
    expected = torch.zeros(2, 3)
    assert not doctor._compared("x", "float32", lambda: expected * torch.nan, expected).good


def test_a_way_that_raises_is_a_finding_with_its_first_line():
    def way():
        raise RuntimeError("no such instruction\nmore")

    finding = doctor._compared("x", "float32", way, torch.zeros(1))
    assert not finding.good
    assert finding.meaning == "it failed: no such instruction"
