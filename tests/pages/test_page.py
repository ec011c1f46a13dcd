"""The page as a whole: complete in itself, strict about what it may do."""

import base64
import hashlib
import re

from pellucid.pages import Html, Section, page, paragraph


def test_a_page_names_no_address():
    whole = page("a title", [Section("One", "text")], lead=paragraph("lead"))
    assert not re.search(r"https?://|url\(|@import|src=|href=", whole)


def test_the_title_is_text_at_both_places():
    whole = page("</title><script>x</script>", [])
    assert whole.count("&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;") == 2
    assert "<script>" not in whole


def test_a_plain_body_is_escaped_and_markup_is_not():
    whole = page("t", [Section("<h>", "<b>"), Section("", Html("<i>x</i>"))])
    assert "<h2>&lt;h&gt;</h2>" in whole
    assert "&lt;b&gt;" in whole
    assert "<i>x</i>" in whole
    assert whole.count("<h2>") == 1


def test_an_empty_section_is_left_out():
    assert "Nothing" not in page("t", [Section("Nothing", "")])


def test_without_a_script_none_may_run():
    policy = re.search(r'Security-Policy" content="([^"]*)"', page("t", []))[1]
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy


def test_only_the_script_that_was_given_may_run():
    script = "document.title += 1"
    whole = page("t", [], script=script)
    inside = re.search(r"<script>(.*?)</script>", whole, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in whole


def test_a_page_asks_phones_for_their_own_width():
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page("t", [])
