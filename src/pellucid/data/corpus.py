"""The built-in corpus: Python's own documentation, which every installation of Python carries.

Half a million characters of English about programming, in 78 documents. It makes `pellucid train` work with no file.
Its text belongs to the Python that runs, so it differs a little between versions; the fingerprint tells.

In: nothing.  Out: `builtin_corpus`.  Used by: the command line.  Read next: split.py.
"""

from __future__ import annotations

import platform

from pellucid.data.sources import Document, Sources, sources_of_texts
from pellucid.errors import DataError

try:
    from pydoc_data.topics import topics
except ImportError:  # a few distributions strip it
    topics = None


def builtin_corpus() -> Sources:
    """Give the topics of Python's `help()` as documents, in the order of their names.

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
    documents = (Document(f"help({name!r})", text) for name, text in sorted(topics.items()))
    return sources_of_texts(documents, notes=[f"No file given: the help pages of Python {platform.python_version()}."])
