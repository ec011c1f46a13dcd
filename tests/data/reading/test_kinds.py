"""Which reader a file gets: by what is in it first, by its name second; of other files, the way to their text."""

import gzip
import io
import zipfile

import pytest
import zstandard

from pellucid.data.reading.csv import Table
from pellucid.data.reading.docx import WordDocument
from pellucid.data.reading.epub import Book
from pellucid.data.reading.html import WebPage
from pellucid.data.reading.jsonl import JsonLines
from pellucid.data.reading.kinds import SUFFIXES, Unreadable, kind_of_name, open_reader
from pellucid.data.reading.odt import OpenDocument
from pellucid.data.reading.plain import PlainText
from pellucid.data.reading.reader import ReadingOptions
from pellucid.data.reading.srt import Subtitles
from pellucid.errors import DataError


def zipped(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


WORD = zipped(**{"[Content_Types].xml": "<Types/>", "word/document.xml": "<a/>"})
BOOK = zipped(**{"mimetype": "application/epub+zip", "META-INF/container.xml": "<a/>"})
OPEN = zipped(**{"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<a/>"})


@pytest.fixture
def opened(tmp_path):
    def do(name: str, content: bytes, **options):
        (tmp_path / name).write_bytes(content)
        return open_reader(tmp_path / name, ReadingOptions(**options))

    return do


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("a.txt", b"text", PlainText),
        ("a.md", b"# text", PlainText),
        ("a.py", b"'''<html>'''", PlainText),
        ("README", b"text", PlainText),
        ("a.xyz", b"text", PlainText),
        ("a.HTML", b"<p>text", WebPage),
        ("a.htm", b"text", WebPage),
        ("a.srt", b"1", Subtitles),
        ("a.csv", b"a,b", Table),
        ("a.tsv", b"a\tb", Table),
        ("a.jsonl", b"{}", JsonLines),
        ("a.docx", WORD, WordDocument),
        ("a.epub", BOOK, Book),
        ("a.odt", OPEN, OpenDocument),
        ("empty.txt", b"", PlainText),
    ],
)
@pytest.mark.parametrize("packing", [("", bytes), (".gz", gzip.compress), (".zst", zstandard.compress)])
def test_each_format_has_its_reader_packed_or_not(opened, name, content, reader, packing):
    suffix, pack = packing
    found = opened(name + suffix, pack(content))
    assert type(found) is reader
    assert found.told_kind == ""


@pytest.mark.parametrize(
    ("name", "content", "reader", "words"),
    [
        ("a.txt", WORD, WordDocument, "a Word document"),
        ("a.docx", BOOK, Book, "an EPUB book"),
        ("a.doc", OPEN, OpenDocument, "an OpenDocument text"),
        ("a.txt", b"<!DOCTYPE html><p>text", WebPage, "a web page"),
        ("a.doc", b"\xef\xbb\xbf\n<HTML><p>text", WebPage, "a web page"),
        ("a.epub", b"text", PlainText, "plain text"),
    ],
)
def test_a_file_whose_name_lies_is_read_as_what_it_is_and_told(opened, name, content, reader, words):
    found = opened(name, content)
    assert type(found) is reader
    assert words in found.told_kind


def test_packing_without_a_suffix_is_known_by_its_bytes(opened):
    assert "".join(opened("a.txt", gzip.compress(b"text")).blocks()) == "text"


@pytest.mark.parametrize(
    ("content", "words", "remedy"),
    [
        (b"%PDF-1.7\n", "a PDF document", "pdftotext"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", "save it as .docx, .odt or plain text"),
        (b"{\\rtf1\\ansi", "an RTF document", "word processor"),
        (b"\x89PNG\r\n\x1a\n", "a PNG picture", "text recognition"),
        (b"\xff\xd8\xff\xe0", "a JPEG picture", "text recognition"),
        (b"BZh91AY", "a bzip2 file", "unpack it first"),
        (b"SQLite format 3\0", "a database", ".csv"),
        (b"\x7fELF\x02", "a program", "give a text"),
        (zipped(**{"[Content_Types].xml": "", "xl/workbook.xml": ""}), "an Excel workbook", "save the sheet as .csv"),
        (zipped(**{"ppt/presentation.xml": ""}), "a PowerPoint presentation", "plain text"),
        (zipped(mimetype="application/vnd.oasis.opendocument.spreadsheet"), "an OpenDocument table", ".csv"),
        (zipped(a="text"), "a ZIP archive", "unpack it, and name the folder"),
        (bytes(range(256)) * 9, "binary data", "plain text"),
    ],
)
def test_what_is_no_text_is_called_by_name_with_the_way_to_its_text(opened, content, words, remedy):
    with pytest.raises(Unreadable) as caught:
        opened("a.txt", content)
    assert words in str(caught.value)
    assert remedy in str(caught.value)


def test_a_truncated_archive_is_a_sentence(opened):
    with pytest.raises(DataError, match="damaged or cut short"):
        opened("a.docx", WORD[: len(WORD) // 2])


def test_text_in_another_encoding_is_not_binary(opened):
    assert type(opened("a.txt", "text\n".encode("utf-16"))) is PlainText
    assert type(opened("a.txt", bytes(range(256)) * 9, encoding="latin-1")) is PlainText


def test_a_name_promises_a_format_packed_or_not():
    assert kind_of_name("a.tar.gz") is None
    assert kind_of_name("README.gz") is kind_of_name("a.txt")
    assert {".txt", ".py", ".html", ".epub", ".docx", ".odt", ".srt", ".csv", ".jsonl"} <= SUFFIXES
