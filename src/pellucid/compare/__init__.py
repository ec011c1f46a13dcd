"""Runs side by side: what differs, what it cost, and whether a difference is larger than its error.

    work → record → groups → differences → series → comparison → in_words → compare_page      (reading order)

The page is asked for by its own name, `pellucid.compare.compare_page`: it brings matplotlib, and lines do not need it.

In: run folders.  Out: a `Comparison`, its lines, its page.  Used by: the command line.  Read next: work.py.
"""

from pellucid.compare.comparison import Comparison, compare
from pellucid.compare.differences import Difference, difference
from pellucid.compare.groups import Group, grouped
from pellucid.compare.in_words import lines
from pellucid.compare.record import Reading, RunRecord, read_run
from pellucid.compare.series import SeriesFile, StoppedRun, read_series, write_series
from pellucid.compare.work import flops_per_token

__all__ = [
    "Comparison",
    "Difference",
    "Group",
    "Reading",
    "RunRecord",
    "SeriesFile",
    "StoppedRun",
    "compare",
    "difference",
    "flops_per_token",
    "grouped",
    "lines",
    "read_run",
    "read_series",
    "write_series",
]
