"""OpenDocument texts: paragraphs, tabs, breaks and written-out spaces come back; comments and deletions do not."""

import re
import zipfile
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading.odt import OpenDocument
from pellucid.errors import DataError

NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
    ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


def document(path, body: str) -> OpenDocument:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr(
            "content.xml",
            f"<office:document-content {NAMES}><office:body><office:text>{body}</office:text></office:body>"
            "</office:document-content>",
        )
    return OpenDocument(path)


@pytest.fixture
def read(tmp_path):
    return lambda body: "".join(document(tmp_path / "x.odt", body).blocks())


def test_headings_and_paragraphs_are_lines(read):
    body = "<text:h>A <text:span>title</text:span></text:h>\n  <text:p>text</text:p><text:p/><text:p>more</text:p>"
    assert read(body) == "A title\ntext\n\nmore\n"


def test_tabs_breaks_and_spaces_are_as_written(read):
    assert read('<text:p>a<text:tab/>b<text:line-break/>c<text:s text:c="3"/>d<text:s/>e</text:p>') == "a\tb\nc   d e\n"


def test_white_space_of_the_file_is_one_space(read):
    assert read("<text:p>\n   one\n   <text:span> two</text:span>\t three</text:p>") == "one two three\n"


def test_a_note_follows_its_paragraph(read):
    body = "<text:note-body><text:p>a note</text:p></text:note-body>"
    note = f"<text:note><text:note-citation>1</text:note-citation>{body}</text:note>"
    assert read(f"<text:p>before{note} after</text:p><text:p>next</text:p>") == "before after\na note\nnext\n"


def test_comments_deletions_and_descriptions_are_left_out(read):
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        "<text:p>kept<office:annotation><dc:creator>me</dc:creator><text:p>a comment</text:p></office:annotation>"
        "<draw:frame><svg:title>a picture</svg:title><svg:desc>of a cat</svg:desc></draw:frame></text:p>"
        "<text:p><text:title>a field</text:title></text:p>"
    )
    assert read(body) == "kept\na field\n"


@pytest.mark.parametrize("count", ["999999999", "9" * 5000, "-1", "x", ""])
def test_a_number_of_spaces_that_no_text_has_does_no_harm(read, count):
    assert len(read(f'<text:p>a<text:s text:c="{count}"/>b</text:p>')) <= 1003


@settings(deadline=None, max_examples=40)
@given(st.lists(XML_TEXT, max_size=6))
def test_paragraphs_written_come_back(tmp_path_factory, texts):
    def written(text: str) -> str:
        return re.sub(" +", lambda spaces: f'<text:s text:c="{len(spaces[0])}"/>', escape(text))

    body = "".join(f"<text:p>{written(text)}</text:p>" for text in texts)
    reader = document(tmp_path_factory.mktemp("odt") / "x.odt", body)
    assert "".join(reader.blocks()) == "".join(f"{text}\n" for text in texts)


def test_a_document_without_content_is_refused(tmp_path):
    path = tmp_path / "x.odt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
    with pytest.raises(DataError, match=r"no “content\.xml” in it"):
        list(OpenDocument(path).blocks())


def test_a_declared_entity_is_refused(tmp_path):
    path = tmp_path / "x.odt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content.xml", '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>')
    with pytest.raises(DataError, match="declares entities"):
        list(OpenDocument(path).blocks())
