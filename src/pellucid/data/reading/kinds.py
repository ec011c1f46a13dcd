"""Which reader reads a file: the one table of formats, by what is in the file first and by its name second.

A file whose name lies is read as what it is, and told. What cannot be read is a sentence with the way to its text.

In: a path.  Out: `open_reader`, `kind_of_name`, `SUFFIXES`, `Unreadable`.  Used by: sources.py, folders.py.
Read next: ../boilerplate.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pellucid.data.pieces import printable
from pellucid.data.reading.archive import Archive
from pellucid.data.reading.csv import Table
from pellucid.data.reading.decoding import binary
from pellucid.data.reading.docx import WordDocument
from pellucid.data.reading.epub import CONTAINER, Book
from pellucid.data.reading.html import WebPage
from pellucid.data.reading.jsonl import JsonLines
from pellucid.data.reading.odt import OpenDocument
from pellucid.data.reading.packed import first_bytes, is_packed
from pellucid.data.reading.parquet import ParquetTable
from pellucid.data.reading.plain import PlainText
from pellucid.data.reading.reader import FileReader, ReadingOptions
from pellucid.data.reading.srt import Subtitles
from pellucid.errors import DataError


@dataclass(frozen=True)
class Kind:
    """A format: what it is called, how its files end, who reads it, and whether text editors can show it."""

    words: str
    suffixes: tuple[str, ...]
    reader: type[FileReader]
    is_text: bool = True


PROSE = (".txt", ".text", ".md", ".markdown", ".rst", ".org", ".tex", ".adoc", "")
CODE_ENDINGS = """py pyi c h cc cpp hpp cs java kt scala go rs swift js jsx ts tsx rb php pl lua r jl hs ml el lisp scm
    clj ex exs erl f90 sql sh bash zsh ps1 bat vim css toml yaml yml ini cfg"""
CODE = tuple(f".{ending}" for ending in CODE_ENDINGS.split())
PLAIN = Kind("plain text", PROSE + CODE, PlainText)
WORD = Kind("a Word document", (".docx", ".docm"), WordDocument, is_text=False)
OPEN_DOCUMENT = Kind("an OpenDocument text", (".odt", ".ott"), OpenDocument, is_text=False)
EPUB = Kind("an EPUB book", (".epub",), Book, is_text=False)
PARQUET = Kind("a Parquet table", (".parquet",), ParquetTable, is_text=False)
HTML = Kind("a web page", (".html", ".htm", ".xhtml"), WebPage)
KINDS = (
    PLAIN,
    HTML,
    Kind("subtitles", (".srt",), Subtitles),
    Kind("a table", (".csv", ".tsv"), Table),
    Kind("JSON lines", (".jsonl", ".ndjson"), JsonLines),
    PARQUET,
    EPUB,
    WORD,
    OPEN_DOCUMENT,
)
BY_SUFFIX = {suffix: kind for kind in KINDS for suffix in kind.suffixes}
PACKED = (".gz", ".zst")
SUFFIXES = frozenset(BY_SUFFIX)
HTML_STARTS = (b"<!doctype html", b"<html")

SAVE_AS = "open it in a word processor and save it as .docx, .odt or plain text"
OTHERS = (  # what begins so is no text, and this is the way to its text
    (b"%PDF-", "a PDF document", "save its text first: File, Save as Text in a viewer, or pdftotext FILE.pdf FILE.txt"),
    (b"\xd0\xcf\x11\xe0", "an old Office document (.doc, .xls or .ppt)", SAVE_AS),
    (b"{\\rtf", "an RTF document", SAVE_AS),
    (b"\x89PNG\r\n", "a PNG picture", ""),
    (b"\xff\xd8\xff", "a JPEG picture", ""),
    (b"GIF87a", "a GIF picture", ""),
    (b"GIF89a", "a GIF picture", ""),
    (b"II*\0", "a TIFF picture", ""),
    (b"MM\0*", "a TIFF picture", ""),
    (b"AT&TFORM", "a DjVu document", "save its text first: djvutxt FILE.djvu FILE.txt"),
    (b"BZh", "a bzip2 file", "unpack it first"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it first"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "unpack it first"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it first"),
    (b"\x7fELF", "a program", "give a text"),
    (b"SQLite format 3\x00", "a database", "export the text as .csv or .jsonl"),
    (b"\x89PELTOK\n", "a token file of pellucid", "give the text it was made of"),
)
READ_PICTURES = "give text; a program for text recognition (OCR), such as tesseract, may find some in the picture"
ZIP = b"PK\x03\x04"
PARQUET_MARK = b"PAR1"
ARCHIVES = {  # a member that tells what an archive is, if it is none of ours
    "xl/workbook.xml": ("an Excel workbook", "save the sheet as .csv"),
    "ppt/presentation.xml": ("a PowerPoint presentation", "save its outline as plain text"),
}


class Unreadable(DataError):
    """A file that is not text, and not of a format that holds text for us."""


def open_reader(path: Path, options: ReadingOptions = ReadingOptions()) -> FileReader:  # noqa: B008 (frozen)
    """Choose the reader of a file by its first bytes and its name.

    Args:
        path: The file.
        options: What the user said about it.

    Returns:
        The reader; it has read no more than the beginning.

    Raises:
        Unreadable: if the file is of a kind without text; the sentence says how to come to its text.
        DataError: if it cannot be opened.
    """
    name, head = printable(str(path)), first_bytes(path)
    named = kind_of_name(path.name)
    for mark, words, remedy in OTHERS:
        if head.startswith(mark):
            raise Unreadable(f"text in {name}", came=words, remedy=remedy or READ_PICTURES)
    if head.startswith(ZIP):
        kind = _kind_of_archive(path)
    elif head.startswith(PARQUET_MARK):
        if is_packed(path):
            raise Unreadable(f"text in {name}", came="a Parquet table that is packed", remedy="unpack it first")
        kind = PARQUET
    elif named is not None and named.is_text:
        kind = HTML if named is PLAIN and _looks_like_a_page(path, head) else named
    else:
        kind = HTML if _looks_like_a_page(path, head) else PLAIN
    if kind is PLAIN and options.encoding is None and binary(head):
        raise Unreadable(f"text in {name}", came="binary data", remedy="save or export it as plain text first")
    reader = kind.reader(path, options)
    if kind is not (named or PLAIN):
        reader.told_kind = f"Read {{n}} file{{s}} as {kind.words}, whatever the name says."
    return reader


def kind_of_name(name: str) -> Kind | None:
    """The format that a file's name promises, packed or not; None if it says nothing.

    Example:
        >>> kind_of_name("Poems.HTML.gz").words, kind_of_name("picture.png")
        ('a web page', None)
    """
    path = Path(name.lower())
    while path.suffix in PACKED:
        path = path.with_suffix("")
    return BY_SUFFIX.get(path.suffix)


def _looks_like_a_page(path: Path, head: bytes) -> bool:
    """Whether text that does not say so in its name is HTML."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return Path(path.name.lower()).suffix not in CODE and start.startswith(HTML_STARTS)


def _kind_of_archive(path: Path) -> Kind:
    with Archive(path) as archive:
        names = archive.names
        if "[Content_Types].xml" in names and any(name.startswith("word/") for name in names):
            return WORD
        if CONTAINER in names:
            return EPUB
        declared = archive.small("mimetype").strip() if "mimetype" in names else b""
        if declared.startswith(b"application/vnd.oasis.opendocument.text"):
            return OPEN_DOCUMENT
        came, remedy = next((ARCHIVES[name] for name in ARCHIVES if name in names), ("a ZIP archive", ""))
        if declared.startswith(b"application/vnd.oasis.opendocument"):
            came, remedy = "an OpenDocument table or drawing", "save it as .odt, .csv or plain text"
        raise Unreadable(
            f"text in {archive.name}", came=came, remedy=remedy or "unpack it, and name the folder with its files"
        )
