"""Word documents: paragraphs, tabs and breaks come back; what a reader does not see is left out."""

import zipfile
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading.docx import WordDocument
from pellucid.errors import DataError

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


def document(path, body: str, *, parts: dict[str, str] | None = None, main: str = "word/document.xml"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(main, f"<w:document {W}><w:body>{body}</w:body></w:document>")
        for name, content in (parts or {}).items():
            archive.writestr(name, content)
    return WordDocument(path)


def paragraph(*runs: str) -> str:
    return "<w:p><w:pPr><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr>" + "".join(runs) + "</w:p>"


def run(text: str) -> str:
    return f'<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


@pytest.fixture
def read(tmp_path):
    def do(body: str, **options) -> str:
        return "".join(document(tmp_path / "x.docx", body, **options).blocks())

    return do


def test_paragraphs_are_lines_and_runs_join(read):
    assert read(paragraph(run("To be, "), run("or not")) + paragraph() + paragraph(run("to be"))) == (
        "To be, or not\n\nto be\n"
    )


def test_tabs_breaks_and_hyphens_in_runs_count_and_tab_stops_do_not(read):
    inner = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:br w:type='page'/></w:r>"
    assert read(paragraph(inner)) == "a\tb\nc\u2011\n"


def test_deleted_and_moved_text_field_codes_and_fallbacks_are_left_out(read):
    body = paragraph(
        run("kept "),
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>",
        f"<w:moveFrom>{run('moved')}</w:moveFrom>",
        f"<w:ins>{run('inserted')}</w:ins>",
        "<w:r><w:instrText>PAGE</w:instrText></w:r>",
        f"<mc:Fallback xmlns:mc='x'><w:p>{run('twice')}</w:p></mc:Fallback>",
    )
    assert read(body) == "kept inserted\n"


def test_a_text_box_follows_its_paragraph(read):
    box = f"<w:r><w:drawing><w:txbxContent>{paragraph(run('boxed'))}</w:txbxContent></w:drawing></w:r>"
    assert read(paragraph(run("before "), box, run("after"))) == "before after\nboxed\n"


def test_cells_of_a_table_are_lines(read):
    cells = "".join(f"<w:tc>{paragraph(run(cell))}</w:tc>" for cell in "ab")
    assert read(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>") == "a\nb\n"


def test_notes_stand_at_the_end_and_headers_do_not(read):
    notes = f"<w:footnotes {W}><w:footnote>{paragraph(run('a note'))}</w:footnote></w:footnotes>"
    parts = {"word/footnotes.xml": notes, "word/header1.xml": notes.replace("a note", "a header")}
    assert read(paragraph(run("text")), parts=parts) == "text\na note\n"


def test_a_main_part_of_another_name_is_found(read):
    relations = (
        '<Relationships xmlns="x"><Relationship Target="/word/document2.xml" Type="http://x/officeDocument"/>'
        "</Relationships>"
    )
    body = paragraph(run("found"))
    assert read(body, parts={"_rels/.rels": relations}, main="word/document2.xml") == "found\n"


def test_the_strict_form_of_the_standard_is_read(tmp_path):
    path = tmp_path / "x.docx"
    with zipfile.ZipFile(path, "w") as archive:
        strict = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'
        archive.writestr(
            "word/document.xml", f"<w:document {strict}><w:p><w:r><w:t>strict</w:t></w:r></w:p></w:document>"
        )
    assert "".join(WordDocument(path).blocks()) == "strict\n"


@settings(deadline=None, max_examples=40)
@given(st.lists(XML_TEXT, max_size=6))
def test_paragraphs_written_come_back(tmp_path_factory, texts):
    body = "".join(paragraph(run(text)) for text in texts)
    reader = document(tmp_path_factory.mktemp("docx") / "x.docx", body)
    assert "".join(reader.blocks()) == "".join(f"{text}\n" for text in texts)


def test_a_declared_entity_is_refused(tmp_path):
    path = tmp_path / "x.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>')
    with pytest.raises(DataError, match="declares entities"):
        list(WordDocument(path).blocks())


def test_broken_xml_is_refused(tmp_path):
    path = tmp_path / "x.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<w:document")
    with pytest.raises(DataError, match="damaged"):
        list(WordDocument(path).blocks())


def test_a_document_without_its_main_part_is_refused(tmp_path):
    path = tmp_path / "x.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/styles.xml", "<a/>")
    with pytest.raises(DataError, match=r"no “word/document\.xml” in it"):
        list(WordDocument(path).blocks())
