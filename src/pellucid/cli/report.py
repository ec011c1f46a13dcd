"""`pellucid report RUN`: one page on which a run tells how good it is, what it wrote and how it learned.

`pellucid train` writes the same page at its end. This verb writes it anew: of a run that was killed, or still goes on,
or that an earlier version made; or to another place.

In: flags.  Out: report.html, and where it is.  Used by: main.  Read next: ../report/.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from pellucid.cli.arguments import parse
from pellucid.cli.printable import printable, printable_json
from pellucid.cli.values import Text


@dataclass(kw_only=True)
class ReportFlags:
    """Write a run's report.html: one file that needs no other, for a browser, a phone or paper."""

    run: tyro.conf.Positional[str]
    """The folder that `pellucid train` wrote."""
    out: Text = None
    """Where to write the page. Default: report.html in the folder."""
    json: bool = False
    """Say where it is as a JSON object."""


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(ReportFlags, words, "report")
    from pellucid.checkpoint import RunFolder
    from pellucid.report import write_report

    page = write_report(RunFolder.open(flags.run), None if flags.out is None else Path(flags.out))
    size = page.stat().st_size
    if flags.json:
        print(printable_json({"report": str(page), "bytes": size}))
        return
    print(printable(f"Written: {page}, {size / 1000:,.0f} kB. Open it in a browser: {page.absolute().as_uri()}"))
