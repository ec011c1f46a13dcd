"""A real browser for pages of ours: opens a file, and tells what the page said, asked for and did on the way.

In: the path of a page.  Out: `opened_in_chromium`.  Used by: tests marked real.  Read next: any of them.
"""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

LOOKS = {
    "light": {"viewport": {"width": 1100, "height": 1400}},
    "dark": {"viewport": {"width": 1100, "height": 1400}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
    },
}


@dataclass
class Opened:
    """A page in a browser; `page` is playwright's."""

    page: Any
    said: list[str] = field(default_factory=list)
    """Lines of the console, errors, dialogs."""
    asked_for: list[str] = field(default_factory=list)
    """Every address but the page's own."""


@contextmanager
def opened_in_chromium(path: Path, look: str = "light") -> Generator[Opened]:
    """The page, opened; skips the test where there is no Chromium or no playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_context(**LOOKS[look]).new_page()
        opened = Opened(page)
        page.on("console", lambda message: opened.said.append(message.text))
        page.on("pageerror", lambda error: opened.said.append(str(error)))
        page.on("dialog", lambda dialog: (opened.said.append(dialog.message), dialog.dismiss()))
        address = path.absolute().as_uri()
        page.on("request", lambda request: opened.asked_for.append(request.url) if request.url != address else None)
        page.goto(address)
        try:
            yield opened
        finally:
            browser.close()
