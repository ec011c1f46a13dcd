"""The built-in corpus: there, the same every time, and said to be what it is."""

import pytest

from pellucid.data import builtin_corpus, corpus
from pellucid.errors import DataError


def test_it_is_some_half_million_characters_in_many_documents():
    sources = builtin_corpus()
    assert 300_000 < sources.characters < 2_000_000
    assert len(sources.documents) > 60


def test_it_is_the_same_every_time():
    assert builtin_corpus().fingerprint == builtin_corpus().fingerprint


def test_it_says_what_it_is():
    assert builtin_corpus().notes[0].startswith("No file given: the help pages of Python 3.")


def test_a_python_without_it_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(corpus, "topics", None)
    with pytest.raises(DataError, match="name a text file"):
        builtin_corpus()
