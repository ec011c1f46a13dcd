"""The built-in corpus: Python's own documentation, which every installation of Python carries.

Some 375,000 characters of English about programming, in 57 documents. It makes `pellucid train` work with no file.
Its text belongs to the Python that runs, so it differs a little between versions; the fingerprint tells.

Every fifth page repeats a part of a longer one (`help("for")` stands in `help("compound")`). With these the best n-gram
needs 1.39 bits per character for the held-out text, xz 0.98; without them 1.99 and 2.01. A model that is praised for
finding copies has learned nothing, so such pages are left out.

In: nothing.  Out: `builtin_corpus`.  Used by: the command line.  Read next: split.py.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator

from pellucid.data.sources import HELD_OUT_PERCENT, Document, Sources, sources_of_texts
from pellucid.errors import DataError

try:
    from pydoc_data.topics import topics
except ImportError:  # a few distributions strip it
    topics = None

TELLING_CHARACTERS = 40  # a shorter paragraph may stand in two pages by chance


def builtin_corpus(*, held_out_percent: int = HELD_OUT_PERCENT) -> Sources:
    """Give the topics of Python's `help()` as documents, in the order of their names.

    Args:
        held_out_percent: How much the split holds out.

    Returns:
        The documents.

    Raises:
        DataError: if this Python was installed without them.

    Example:
        >>> builtin_corpus().characters > 300_000
        True
    """
    if not topics:
        raise DataError(
            "Python's documentation (pydoc_data.topics) in this installation",
            came="a Python that was installed without it",
            remedy="name a text file to train on",
        )
    documents = (Document(f"help({name!r})", topics[name]) for name in sorted(_without_repeats(topics)))
    note = f"No file given: the help pages of Python {platform.python_version()}."
    return sources_of_texts(documents, notes=[note], held_out_percent=held_out_percent)


def _without_repeats(pages: dict[str, str]) -> Iterator[str]:
    """Name the pages of which at least half does not stand, but for line breaks, in longer pages."""
    known: set[str] = set()
    for name in sorted(pages, key=lambda name: (-len(pages[name]), name)):
        paragraphs = [" ".join(paragraph.split()) for paragraph in pages[name].split("\n\n")]
        telling = [paragraph for paragraph in paragraphs if len(paragraph) >= TELLING_CHARACTERS]
        repeated = sum(len(paragraph) for paragraph in telling if paragraph in known)
        if 2 * repeated <= sum(map(len, telling)):
            known.update(telling)
            yield name
