"""The built-in corpus: there, the same every time, and said to be what it is."""

import pytest

from pellucid.data import builtin_corpus, corpus, sample_split
from pellucid.errors import DataError
from pellucid.yardsticks import longest_copied


def test_it_is_some_hundred_thousand_characters_in_many_documents():
    sources = builtin_corpus()
    assert 300_000 < sources.characters < 2_000_000
    assert len(sources.documents) > 40


def test_pages_that_stand_in_longer_ones_are_left_out(monkeypatch):
    long = [f"{part}: a paragraph that is long enough to be told from others" for part in "abcdef"]
    pages = {
        "whole": "\n\n".join(long),
        "part": "\n\n".join(long[:3]).replace(" paragraph", "\n   paragraph"),
        "mostly new": long[0] + "\n\n" + "something else, which is in no other page at all, " * 2,
        "short": "see there",
    }
    monkeypatch.setattr(corpus, "topics", pages)
    assert [document.name for document in builtin_corpus().documents] == [
        "help('mostly new')",
        "help('short')",
        "help('whole')",
    ]


def test_held_out_text_is_not_in_the_training_text():
    sample = sample_split(builtin_corpus())
    assert len(longest_copied("".join(sample.held_out), sample.training).text) < 300


def test_it_is_the_same_every_time():
    assert builtin_corpus().fingerprint == builtin_corpus().fingerprint


def test_it_says_what_it_is():
    assert builtin_corpus().notes[0].startswith("No file given: the help pages of Python 3.")


def test_a_python_without_it_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(corpus, "topics", None)
    with pytest.raises(DataError, match="name a text file"):
        builtin_corpus()
