"""One self-contained page: no address outside it, no script but what is given, readable on a phone and on paper.

A content security policy in its head makes the browser hold to that: nothing is fetched, nothing is sent.

In: a title and sections.  Out: HTML.  Used by: report, evaluate, compare.  Read next: curves.py.
"""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from pellucid.pages.markup import Html, escaped, foreign
from pellucid.pages.style import STYLE


@dataclass(frozen=True)
class Section:
    """A part of a page: `body` under a heading. A plain `str` is escaped, `Html` is taken as it is."""

    heading: str
    body: str


def page(
    title: str, sections: Iterable[Section], *, lead: str = "", language: str = "en", style: str = "", script: str = ""
) -> str:
    """The whole page.

    Args:
        title: Of the window and at the top.
        sections: In order; those with an empty body are left out. An empty heading makes no heading.
        lead: What stands before the first section: the answer.
        language: Of the page's own words.
        style: More rules for this page, after those of every page.
        script: Of ours, if the page must move; never anything that came with a text.

    Returns:
        HTML, to be written as UTF-8.

    Example:
        >>> from pellucid.pages.markup import paragraph
        >>> whole = page("book <1>", [Section("Curves", paragraph("none"))])
        >>> "<title>book &lt;1&gt;</title>" in whole, "http" in whole.replace("http-equiv", "")
        (True, False)
    """
    body = "".join(_section(section) for section in sections if section.body)
    return f"""<!DOCTYPE html>
<html lang="{escaped(language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escaped(title)}</title>
<style>
{STYLE}
{style}</style>
</head>
<body>
<main>
<h1>{foreign(title)}</h1>
{escaped(lead)}
{body}</main>
{f"<script>{script}</script>" if script else ""}</body>
</html>
"""


def _section(section: Section) -> str:
    heading = f"<h2>{escaped(section.heading)}</h2>\n" if section.heading else ""
    return f"<section>\n{heading}{escaped(section.body)}\n</section>\n"


def _policy(script: str) -> Html:
    """What the page may do: paint itself, and run the one script whose hash is named."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"script-src 'sha256-{digest}'; " if script else ""
    return Html(
        f"default-src 'none'; {scripts}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
