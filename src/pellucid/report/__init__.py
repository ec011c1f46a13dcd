"""The report: one page on which a run tells how good it is, what it wrote, how it learned and what it is made of.

    record → spaced → opening → learning → copying → text_card → course → picture → attention → health → identity
    → writing;  beside it: trackers

In: a run folder.  Out: report.html.  Used by: the command line.  Read next: record.py.
"""

from pellucid.report.writing import report_page, write_report

__all__ = ["report_page", "write_report"]
