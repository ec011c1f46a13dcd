"""The first reading: counts and hashes in arrays, copies and empties known, names of rows."""

import hashlib

import pytest

from pellucid.data.sources import Document, TextInMemory
from pellucid.data.survey import Survey
from pellucid.errors import DataError


class Rows:
    """A table in memory."""

    rows = True

    def __init__(self, name: str, *texts: str):
        self.name, self._texts = name, texts

    def documents(self):
        return ([text] for text in self._texts)


def surveyed(*readables) -> Survey:
    survey = Survey()
    for readable in readables:
        survey.read(readable)
    return survey


def test_each_document_has_its_facts():
    documents = surveyed(TextInMemory(Document("a", "é𝄞")), TextInMemory(Document("b", "x"))).documents()
    assert [(facts.name, facts.characters, facts.utf8_bytes) for facts in documents] == [("a", 2, 6), ("b", 1, 1)]
    assert documents[1].digest == hashlib.sha256(b"x").digest()
    assert [facts.name for facts in documents[-1:]] == ["b"]


def test_rows_are_named_by_their_table_and_number():
    documents = surveyed(Rows("t.csv", "a", "b"), TextInMemory(Document("c", "c")), Rows("u.csv", "d")).documents()
    assert [facts.name for facts in documents] == ["t.csv (text 1)", "t.csv (text 2)", "c", "u.csv (text 1)"]


def test_empty_documents_and_copies_are_not_kept_but_known():
    documents = surveyed(Rows("t", "a", "", "b", "a"), Rows("u", "b", "c", "")).documents()
    assert [facts.name for facts in documents] == ["t (text 1)", "t (text 3)", "u (text 2)"]
    assert documents.empty.tolist() == [1, 6]
    assert documents.copies == [(3, 0), (4, 2)]
    assert [number for number in range(7) if documents.is_kept(number)] == [0, 2, 5]
    assert documents.surveyed == 7
    assert documents.joined_digests() == b"".join(hashlib.sha256(text).digest() for text in (b"a", b"b", b"c"))


def test_no_document_at_all():
    documents = surveyed().documents()
    assert (len(documents), documents.copies, documents.surveyed) == (0, [], 0)


def test_boilerplate_is_looked_for_in_files_and_not_in_rows():
    survey = surveyed(TextInMemory(Document("a", "a")), Rows("t", "a"))
    assert survey.boilerplate[0] is not None
    assert survey.boilerplate[1] is None


def test_a_lone_surrogate_is_refused():
    with pytest.raises(DataError, match=r"U\+D800, a lone surrogate"):
        surveyed(Rows("t", "ab\ud800"))
