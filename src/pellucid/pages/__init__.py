"""Pages that need nothing but themselves: one HTML file for people, to keep, to send, to print.

    markup → style → curves → page      (reading order)

What a person or a model wrote is data here: it is escaped, and shown in the direction of its own script.

In: words, numbers, tables.  Out: HTML.  Used by: report, evaluate, compare.  Read next: markup.py.
"""

from pellucid.pages.curves import Level, Series, line_chart
from pellucid.pages.markup import Html, escaped, facts, figure, foreign, joined, paragraph, table, visible
from pellucid.pages.page import Section, page

__all__ = [
    "Html",
    "Level",
    "Section",
    "Series",
    "escaped",
    "facts",
    "figure",
    "foreign",
    "joined",
    "line_chart",
    "page",
    "paragraph",
    "table",
    "visible",
]
