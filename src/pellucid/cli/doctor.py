"""`pellucid doctor`: what this machine has, what follows, and whether it computes right.

    0  everything is right, or could merely be better        1  something is wrong

In: flags.  Out: a line for each finding, or JSON.  Used by: main.  Read next: ../doctor.py.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pellucid.cli.arguments import parse
from pellucid.cli.printable import printable

MARKS = {"right": "✓", "note": "·", "wrong": "✗"}


@dataclass(kw_only=True)
class DoctorFlags:
    """Look at this machine: what it has, what that means for training, and whether it computes right."""

    quick: bool = False
    """Leave out what is measured or compiled: a few seconds instead of half a minute."""
    json: bool = False
    """The findings as JSON, and nothing else, on standard output."""


def main(words: Sequence[str]) -> int:
    """Run the verb."""
    flags = parse(DoctorFlags, words, "doctor")
    if not flags.json:
        print("pellucid doctor: starting torch, then looking and computing.", flush=True)
    from pellucid.doctor import Finding, examine

    found: list[Finding] = []
    for finding in examine(Path.cwd(), quick=flags.quick):
        found.append(finding)
        if not flags.json:
            mark = MARKS[finding.state]
            print(printable(f"{mark} {finding.topic:<22} {finding.said}: {finding.so_what}."), flush=True)
    wrong = [finding.topic for finding in found if finding.state == "wrong"]
    if flags.json:
        print(json.dumps({"right": not wrong, "findings": [finding.as_json() for finding in found]}))
    elif wrong:
        print(f"Wrong: {', '.join(wrong)}.")
    else:
        print("Everything computes right. Next: pellucid train, or pellucid bench train.")
    return 1 if wrong else 0
