"""EPUB books → their text: the chapters in the order of the spine, each as a web page is read.

The table of contents that readers show by itself is left out; protected books are refused.

In: a path.  Out: `Book`.  Used by: kinds.py.  Read next: columns.py.
Source: W3C EPUB 3.3, 4.2.6.3 (container.xml), 5.6 and 5.7 (manifest and spine).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from pellucid.data.pieces import printable
from pellucid.data.reading.archive import Archive
from pellucid.data.reading.decoding import decoded
from pellucid.data.reading.html import page_encoding, page_text
from pellucid.data.reading.reader import FileReader
from pellucid.data.reading.xml_stream import read_xml
from pellucid.errors import DataError

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml", ""))


class Book(FileReader):
    """An .epub file."""

    def blocks(self) -> Iterator[str]:
        """The chapters, one after another."""
        with Archive(self.path) as archive:
            chapters = _chapters(archive)
            if not chapters:
                raise archive.damaged("a book without chapters")
            protected = _protected(archive)
            for chapter in chapters:
                if chapter in protected:
                    raise DataError(
                        f"a book that can be read in {self.name}",
                        came="one that is protected against reading (its chapters are encrypted)",
                        remedy="use an edition without protection",
                    )
                page = archive.small(chapter)
                encoding = page_encoding(page, lambda page=page: [page], self.changes)
                text = decoded([page], f"{self.name} ({printable(chapter)})", encoding, self.changes)
                yield from page_text(text, self.name, self.changes)


class _Package:
    """Collects what the lists in a book say: where they point, the manifest, the spine, what is encrypted."""

    def __init__(self) -> None:
        self.package = ""
        self.manifest: dict[str, str] = {}
        self.spine: list[str] = []
        self.encrypted: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        match tag.rpartition(" ")[2]:
            case "rootfile":
                self.package = self.package or attributes.get("full-path", "")
            case "item":
                is_contents = "nav" in attributes.get("properties", "").split()
                if attributes.get("media-type", "") in PAGES and not is_contents:
                    self.manifest[attributes.get("id", "")] = attributes.get("href", "")
            case "itemref":
                self.spine.append(attributes.get("idref", ""))
            case "CipherReference":
                self.encrypted.append(unquote(attributes.get("URI", "")))

    def end(self, tag: str) -> None: ...

    def text(self, text: str) -> None: ...


def _listed(archive: Archive, member: str) -> _Package:
    package = _Package()
    for _ in read_xml([archive.small(member)], package, archive.name):
        pass
    return package


def _chapters(archive: Archive) -> list[str]:
    """Names of the chapters in the archive, in reading order, each once."""
    package_file = _listed(archive, CONTAINER).package
    package = _listed(archive, package_file)
    folder = posixpath.dirname(package_file)
    found = (
        posixpath.normpath(posixpath.join(folder, unquote(package.manifest[chapter].partition("#")[0])))
        for chapter in package.spine
        if chapter in package.manifest
    )
    return list(dict.fromkeys(found))


def _protected(archive: Archive) -> frozenset[str]:
    return frozenset(_listed(archive, ENCRYPTION).encrypted) if ENCRYPTION in archive.names else frozenset()
