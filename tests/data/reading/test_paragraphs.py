"""Paragraphs: lines in order, inner ones after the one around them."""

from pellucid.data.reading.paragraphs import Paragraphs


def test_each_paragraph_is_a_line_even_an_empty_one():
    paragraphs = Paragraphs()
    for text in ("one", "", "two\tcells"):
        paragraphs.begin()
        paragraphs.add(text)
        paragraphs.end()
    assert paragraphs.take() == "one\n\ntwo\tcells\n"
    assert paragraphs.take() == ""


def test_inner_paragraphs_follow_the_outer_one_in_order():
    paragraphs = Paragraphs()
    paragraphs.begin()
    for inner in ("b", "c"):
        paragraphs.begin()
        paragraphs.add(inner)
        paragraphs.end()
    assert paragraphs.take() == ""
    paragraphs.add("a")
    paragraphs.end()
    assert paragraphs.take() == "a\nb\nc\n"


def test_text_outside_of_paragraphs_and_an_end_too_many_do_nothing():
    paragraphs = Paragraphs()
    paragraphs.add("\n  ")
    paragraphs.end()
    assert paragraphs.take() == ""


def test_a_paragraph_knows_whether_a_space_would_follow_a_space():
    paragraphs = Paragraphs()
    paragraphs.begin()
    assert paragraphs.ends_in_space()
    paragraphs.add("a")
    assert not paragraphs.ends_in_space()
    paragraphs.add(" ")
    assert paragraphs.ends_in_space()
