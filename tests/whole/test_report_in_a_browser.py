"""The report as a browser shows it: from a file, without a network, on a desk, on a phone and on paper."""

import shutil
from pathlib import Path

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.report import write_report
from tests.report.invented_run import TEXT, finished, sampled
from tests.train.small_run import cut_short, train_small

pytestmark = pytest.mark.real
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PERSIAN, CHINESE = "زندگی زیباست، ای زیباپسند", "学而时习之，不亦说乎"
PHONE = {"width": 390, "height": 844}
LEGIBLE = 8.5  # pixels: the smallest letters of a picture on a phone


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A real run, with samples that would like to be markup and others that are written from right to left."""
    path = tmp_path_factory.mktemp("runs") / "words-01"
    with pytest.MonkeyPatch.context() as patch:
        cut_short(patch)
        train_small(path, steps=8, evaluations=2)
    folder = RunFolder.open(path)
    for number, text in enumerate((PERSIAN, CHINESE, TEXT)):
        folder.append_metrics(sampled(number, text))
    folder.append_metrics(finished(sample=PERSIAN, copied="زیبا", usually_shared=CHINESE))
    folder.write_run(folder.facts | {"name": "words <1>"})
    return write_report(folder)


@pytest.fixture
def opened(browser, report):
    """Opens the page; whatever it complains of or asks for is kept."""
    contexts = []

    def open_page(**settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page, page.complaints, page.asked = context.new_page(), [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_it_opens_without_a_complaint_and_asks_for_nothing_but_itself(opened, report):
    page = opened()
    assert page.title() == "words <1>"
    assert page.complaints == []
    assert [url for url in page.asked if not url.startswith("data:")] == [report.as_uri()]


def test_every_text_is_shown_as_it_is(opened):
    page = opened()
    passages = page.locator(".passage").all_inner_texts()
    for text in (PERSIAN, CHINESE):
        assert text in passages
    assert any('<script>alert("no")</script>' in text for text in passages)
    assert page.locator("script").count() == 0


def test_text_written_from_right_to_left_stands_at_the_right(opened):
    page = opened()
    way = "node => getComputedStyle(node).direction"
    assert page.locator(".passage", has_text=PERSIAN).first.evaluate(way) == "rtl"
    assert page.locator(".passage", has_text=CHINESE).first.evaluate(way) == "ltr"


def test_every_picture_is_there(opened):
    page = opened()
    widths = page.locator("img").evaluate_all("images => images.map(image => image.naturalWidth)")
    assert widths
    assert min(widths) > 1
    boxes = page.locator(".chart svg:visible").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert len(boxes) >= 3
    assert min(boxes) > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_paper_in_any_light(opened, scheme):
    page = opened(color_scheme=scheme)
    colour = "node => getComputedStyle(node).{}.match(/[0-9.]+/g).slice(0, 3).map(Number)"
    paper = page.locator("body").evaluate(colour.format("backgroundColor"))
    for selector, property_name in (("body", "color"), (".note", "color"), (".chart svg:visible text", "fill")):
        ink = page.locator(selector).first.evaluate(colour.format(property_name))
        assert _contrast(ink, paper) >= 4.5, selector  # what WCAG asks of small letters


def test_nothing_is_wider_than_a_phone_and_its_charts_can_be_read(opened):
    page = opened(viewport=PHONE, device_scale_factor=2)
    for details in page.locator("details").all():
        details.evaluate("node => node.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    heights = page.locator(".chart svg:visible text").evaluate_all(
        "all => all.map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().d)"
    )
    assert min(heights) >= LEGIBLE


def test_it_can_be_printed(opened):
    printed = opened(color_scheme="dark").pdf()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 10_000


def test_on_paper_it_is_dark_on_light(opened):
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("body").evaluate("node => getComputedStyle(node).backgroundColor") == "rgb(255, 255, 255)"


def _contrast(first, second) -> float:
    """Of two colours, by WCAG 2.2: (L1 + 0.05) / (L2 + 0.05)."""
    low, high = sorted(map(_luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour) -> float:
    parts = (part / 255 for part in colour)
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
