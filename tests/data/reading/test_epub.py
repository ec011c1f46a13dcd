"""EPUB books: chapters in the order of the spine, whatever their names, and nothing that is no chapter."""

import html
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading.epub import Book
from pellucid.errors import DataError

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def book(path, chapters: dict[str, str | bytes], *, spine=None, extra: dict[str, str] | None = None, nav: str = ""):
    items = "".join(
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(chapters)
    )
    refs = "".join(f'<itemref idref="c{n}"/>' for n in (range(len(chapters)) if spine is None else spine))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr(
            "OEBPS/content.opf",
            f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}{nav}</manifest><spine>{refs}</spine></package>',
        )
        for name, content in chapters.items():
            archive.writestr(f"OEBPS/{name}", content)
        for name, content in (extra or {}).items():
            archive.writestr(name, content)
    return Book(path)


def page(text: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html [<!ENTITY nbsp "&#160;">]>'
        f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body><p>{text}</p></body></html>'
    ).replace(' [<!ENTITY nbsp "&#160;">]', "")


def read(reader: Book) -> str:
    return "".join("".join(blocks) for blocks in reader.documents())


def refusal(reader: Book) -> str:
    with pytest.raises(DataError) as caught:
        read(reader)
    return str(caught.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.epub"


def test_chapters_come_in_the_order_of_the_spine(path):
    chapters = {"z.xhtml": page("one"), "a.xhtml": page("two&nbsp;&amp;"), "m.xhtml": page("three")}
    assert read(book(path, chapters, spine=[2, 0, 1])) == "three\none\ntwo\xa0&\n"


def test_a_chapter_named_twice_is_read_once_and_one_outside_the_spine_is_not_read(path):
    chapters = {"a.xhtml": page("one"), "b.xhtml": page("no")}
    assert read(book(path, chapters, spine=[0, 0])) == "one\n"


def test_names_with_spaces_and_folders_are_found(path):
    reader = book(path, {"text/my%20book.xhtml": ""}, extra={"OEBPS/text/my book.xhtml": page("found")})
    assert read(reader) == "found\n"


def test_the_table_of_contents_is_left_out(path):
    nav = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    reader = book(path, {"a.xhtml": page("text")}, nav=nav, extra={"OEBPS/nav.xhtml": page("contents")})
    assert read(reader) == "text\n"


def test_a_chapter_in_a_declared_encoding_is_read_and_told(path):
    old = page("Привет").replace("utf-8", "windows-1251").encode("cp1251")
    reader = book(path, {"a.xhtml": old})
    assert read(reader) == "Привет\n"
    assert any("windows-1251" in sentence for sentence in reader.changes)


def test_a_path_out_of_the_book_reaches_nothing(path, tmp_path):
    (tmp_path / "secret").write_text("secret")
    assert "in it" in refusal(book(path, {"../../secret": ""}, spine=[0]))


def test_a_protected_book_is_refused_and_protected_fonts_are_not_minded(path):
    def encryption(name: str) -> dict[str, str]:
        listed = f'<encryption xmlns="x"><EncryptedData><CipherReference URI="{name}"/></EncryptedData></encryption>'
        return {"META-INF/encryption.xml": listed}

    chapters = {"a.xhtml": page("text")}
    assert "protected against reading" in refusal(book(path, chapters, extra=encryption("OEBPS/a.xhtml")))
    assert read(book(path, chapters, extra=encryption("OEBPS/font.otf"))) == "text\n"


def test_a_book_without_chapters_is_refused(path):
    assert "without chapters" in refusal(book(path, {}))


def test_a_book_whose_lists_are_broken_is_refused(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/container.xml", CONTAINER)
    assert "content.opf" in refusal(Book(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/container.xml", "<container")
    assert "XML is damaged" in refusal(Book(path))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.text(st.characters(categories=["L", "M", "N", "P", "S"]), min_size=1), min_size=1, max_size=4))
def test_chapters_written_come_back(tmp_path_factory, texts):
    chapters = {f"{n}.xhtml": page(html.escape(text)) for n, text in enumerate(texts)}
    reader = book(tmp_path_factory.mktemp("epub") / "x.epub", chapters)
    assert read(reader) == "".join(f"{text}\n" for text in texts)
