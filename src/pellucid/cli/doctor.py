"""`pellucid doctor`: what this machine has, and whether it computes right.

In: flags.  Out: a line for each finding; exit code 1 if one is bad.  Used by: main.  Read next: ../doctor.py.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.text import Text

from pellucid.cli.arguments import parse
from pellucid.cli.printable import printable
from pellucid.doctor import Finding, examine


@dataclass(kw_only=True)
class DoctorFlags:
    """Say what this machine has, how fast it multiplies, and whether every way to compute gives the same numbers."""

    quick: bool = False
    """Leave out torch.compile, which takes some seconds."""
    json: bool = False
    """One JSON object a line for each finding."""


def main(words: Sequence[str]) -> int:
    """Run the verb."""
    flags = parse(DoctorFlags, words, "doctor")
    console, bad = Console(highlight=False, soft_wrap=True), 0
    for finding in examine(compiled=not flags.quick):
        bad += not finding.good
        if flags.json:
            print(json.dumps(asdict(finding), ensure_ascii=False))
        else:
            console.print(line(finding))
    if not flags.json:
        console.print(f"{bad} of these need attention." if bad else "All is well.")
    return 1 if bad else 0


def line(finding: Finding) -> Text:
    """A finding as it is printed; text from the machine is data, not markup."""
    meaning = f": {finding.meaning}" if finding.meaning else ""
    mark = "ok " if finding.good else "!! "
    return Text(
        printable(f"{mark} {finding.name:<30} {finding.value}{meaning}"), style="" if finding.good else "bold red"
    )
