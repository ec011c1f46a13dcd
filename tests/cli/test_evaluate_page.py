import re

import pytest

from pellucid.cli.evaluate_page import check_page, evaluation_page, write_page
from pellucid.data import Document, sources_of_texts
from pellucid.errors import UserError
from pellucid.inspection import score_documents
from pellucid.loading import Loaded
from pellucid.text import character_tokenizer, train_byte_pairs
from tests.chromium import LOOKS, opened_in_chromium
from tests.cli.test_evaluate_findings import findings
from tests.inspection.test_heat_map import NASTY
from tests.train.small_run import small_model, small_text


@pytest.fixture(scope="module")
def loaded():
    tokenizer = train_byte_pairs([NASTY + small_text()], 300)
    return Loaded(small_model(vocab_size=tokenizer.vocab_size), tokenizer)


def scored(loaded, *texts):
    sources = sources_of_texts([Document(f"<b>{number}</b>.txt", text) for number, text in enumerate(texts)])
    return list(score_documents(loaded.model, loaded.tokenizer, sources, escape_bits=30.0, stride=8))


def told(loaded, *texts, **changes):
    documents = scored(loaded, *texts)
    usual = {"documents": tuple(one.score for one in documents), "context_length": 16, "stride": 8}
    return findings(**usual | changes), documents


def drawn(loaded, *texts, **changes):
    return evaluation_page(*told(loaded, *texts, **changes), loaded)


def test_the_page_needs_nothing_but_itself_and_runs_nothing(loaded):
    page = drawn(loaded, NASTY)
    assert not re.search(r"(src|href)=.?(http|//)|url\(|@import", page.replace("src=x", ""))
    assert "<script" not in page
    assert "default-src 'none'" in page


def test_what_a_text_or_its_name_spells_is_text(loaded):
    page = drawn(loaded, NASTY)
    assert "<img" not in page
    assert "&lt;b&gt;0&lt;/b&gt;.txt" in page


def test_a_short_text_is_all_there_and_a_long_one_in_passages_that_say_where_they_are(loaded):
    short = drawn(loaded, small_text(500))
    assert "All " in short
    assert "are shown." in short
    long = drawn(loaded, small_text(30_000, seed=1), small_text(3000, seed=2))
    assert "The beginning" in long
    assert "The passages that surprised it most" in long
    assert re.search(r"1&lt;/b&gt;.txt</bdi>, characters [\d,]+ to [\d,]+", long)
    assert len(long) < 3_000_000


def test_figures_yardsticks_and_documents_stand_above(loaded):
    page = drawn(loaded, small_text(500), small_text(600, seed=2))
    for words in ("bits per character", "bits per byte", "nats per token", "5-gram", "what it knew", "Documents"):
        assert words in page
    alone = drawn(loaded, small_text(500), yardsticks=())
    assert "Documents" not in alone
    assert "what it knew" not in alone


@pytest.mark.parametrize("name", ["book.txt", "page", "page.htm.txt"])
def test_a_page_never_takes_the_place_of_a_text(tmp_path, name):
    with pytest.raises(UserError, match=r"ends in \.html"):
        check_page(tmp_path / name)


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path, loaded):
    check_page(tmp_path / "page.html")
    check_page(tmp_path / "page.HTM")
    (tmp_path / "folder.html").mkdir()
    for path in (tmp_path / "folder.html", tmp_path / "nowhere" / "page.html"):
        with pytest.raises(UserError, match="can be written"):
            check_page(path)
    with pytest.raises(UserError, match="can be written"):
        write_page(tmp_path / "folder.html", *told(loaded, "the cat"), loaded)


@pytest.mark.real
@pytest.mark.parametrize("look", LOOKS)
def test_a_browser_shows_it_in_silence(loaded, tmp_path, look):
    path = tmp_path / "page.html"
    write_page(path, *told(loaded, NASTY + small_text(2000)), loaded)
    with opened_in_chromium(path, look) as opened:
        page = opened.page
        tokens = page.locator(".heat span")
        token = tokens.nth(40)
        token.scroll_into_view_if_needed()
        if look == "phone":
            token.tap()
        else:
            token.hover()
        tip = token.evaluate("e => getComputedStyle(e, '::after').content")
        assert " bits · " in tip
        assert "none" in tokens.nth(41).evaluate("e => getComputedStyle(e, '::after').content")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.locator("img, script").count() == 0
        page.screenshot(path=tmp_path / f"{look}.png")
        assert (opened.said, opened.asked_for) == ([], [])


@pytest.mark.real
def test_a_browser_writes_each_line_in_the_direction_of_its_script_and_joins_its_letters(tmp_path):
    text, path = "بیت نیک\nabc def", tmp_path / "page.html"
    tokenizer = character_tokenizer([text])
    letters = Loaded(small_model(vocab_size=tokenizer.vocab_size), tokenizer)
    write_page(path, *told(letters, text), letters)
    with opened_in_chromium(path) as opened:
        boxes = [box.bounding_box() for box in opened.page.locator(".heat span").all()]
        assert boxes[0]["x"] > boxes[1]["x"] > boxes[2]["x"]  # Persian runs to the left
        assert boxes[-1]["x"] > boxes[-2]["x"]  # and English to the right, below it
        assert boxes[-1]["y"] > boxes[0]["y"]
        joined = boxes[0]["width"]  # a letter that joins is narrower than the same one alone
        assert joined < 0.8 * opened.page.locator(".heat span").first.evaluate(
            "element => { element.parentNode.replaceChildren(element); return element.getBoundingClientRect().width }"
        )
