"""The page of a comparison in a browser: nothing fetched, nothing wider than a phone, every interval in place."""

import shutil

import pytest

from pellucid.compare import compare
from pellucid.compare.compare_page import comparison_page
from tests.compare.made_runs import made_run

pytestmark = pytest.mark.real
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        made_run(folder / f"base-seed-{seed}", seed=seed, bits=(200.0 + seed, 210.0, 190.0, 205.0))
        made_run(
            folder / f"زیبا <b>-seed-{seed}",
            seed=seed,
            bits=(240.0, 251.0, 229.0 + seed, 244.0),
            model={"norm": "none"},
        )
    path = folder / "compare.html"
    path.write_text(comparison_page(compare([folder])), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_it_is_whole_at_every_width(browser, page_file, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    assert complaints == []
    assert asked == [page_file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("figure:visible").count() == 5
    assert page.locator("b").count() == 0
    bar = page.locator(".figures svg").first.evaluate(
        "svg => { const b = svg.querySelectorAll('line')[1].getBoundingClientRect(), s = svg.getBoundingClientRect();"
        " return [b.left - s.left, b.width, s.right - b.right] }"
    )
    assert min(bar) > 0
    context.close()
