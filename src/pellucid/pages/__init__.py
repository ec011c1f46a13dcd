"""Pages that need nothing but themselves: one HTML file for people, to keep, to send, to print.

    quantities → markup → style → page → curves      (reading order)

Curves are asked for by their own name, `pellucid.pages.curves`: they bring matplotlib, and not every page needs it.

What a person or a model wrote is data here: it is escaped, and shown in the direction of its own script.

In: words, numbers, tables.  Out: HTML.  Used by: report, evaluate, compare.  Read next: quantities.py.
"""

from pellucid.pages.markup import Html, escaped, facts, figure, foreign, joined, paragraph, table, visible
from pellucid.pages.page import Section, page
from pellucid.pages.quantities import counted, duration

__all__ = [
    "Html",
    "Section",
    "counted",
    "duration",
    "escaped",
    "facts",
    "figure",
    "foreign",
    "joined",
    "page",
    "paragraph",
    "table",
    "visible",
]
