"""XML as a stream of tags and text, safe to read from strangers.

The parser is Python's own expat. Entities may not be declared, so that nothing multiplies (a "billion laughs") and no
other file is looked up; what a document says beyond tags and text is left out.

In: blocks of bytes.  Out: `Handler`, `read_xml`.  Used by: docx.py, odt.py, epub.py.  Read next: paragraphs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable
from xml.parsers import expat

from pellucid.errors import DataError

DEEPEST = 10_000  # tags within tags; real documents have tens


@runtime_checkable
class Handler(Protocol):
    """What is told of a document. A tag is "namespace local-name", or the local name alone."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A tag opens."""

    def end(self, tag: str) -> None:
        """A tag closes."""

    def text(self, text: str) -> None:
        """A stretch of text."""


def read_xml(blocks: Iterable[bytes], handler: Handler, name: str) -> Iterator[None]:
    """Read a document, and come up for air after each block.

    Args:
        blocks: The document.
        handler: Whom to tell.
        name: What messages call the document.

    Yields:
        Nothing, whenever a block has been told.

    Raises:
        DataError: if it is no XML, or declares entities.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _unsafe(name, f"tags more than {DEEPEST:,} deep")
        handler.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(tag)

    def refuse(*_: object) -> None:
        raise _unsafe(name, "one that declares entities, which can multiply without end")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = refuse
    parser.buffer_text = True
    try:
        for block in blocks:
            parser.Parse(block, False)
            yield
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"a whole document in {name}",
            came=f"one whose XML is damaged (“{error}”)",
            remedy="get it again, or save its text as .txt",
        ) from error
    yield


def _unsafe(name: str, came: str) -> DataError:
    return DataError(f"a plain document in {name}", came=came, remedy="if it is sound, save its text as .txt")
