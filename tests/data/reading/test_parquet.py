"""Parquet tables: one column, row by row, and a sentence for what cannot be read."""

import gzip
import sys

import pytest

from pellucid.data import open_sources
from pellucid.data.reading import UnclearColumn, Unreadable, open_reader, parquet
from pellucid.errors import DataError

TEXTS = [f"A text of several words, number {number}.\r\nAnd a second line." for number in range(50)]


@pytest.fixture
def written(tmp_path):
    arrow, tables = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(columns, name="x.parquet", **options):
        tables.write_table(arrow.table(columns), tmp_path / name, **options)
        return tmp_path / name

    return write


def test_each_row_is_a_document_whatever_the_groups(written, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_TOGETHER", 6)
    path = written({"id": list(range(50)), "body": TEXTS}, row_group_size=7)
    sources = open_sources([path], held_out_percent=0)
    assert len(sources.documents) == 50
    assert "".join(piece.text for piece in sources.pieces()) == "".join(TEXTS).replace("\r\n", "\n")
    assert "Read the column “body” of 1 table." in sources.notes


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_every_way_to_store_text_is_read(written, kind):
    arrow = pytest.importorskip("pyarrow")
    values = arrow.array(TEXTS, arrow.large_string() if kind == "large_string" else arrow.string())
    path = written({"n": [1.5] * 50, "text": values.dictionary_encode() if kind == "dictionary" else values})
    assert len(open_sources([path], held_out_percent=0).documents) == 50


def test_rows_without_text_are_left_out_and_told(written):
    sources = open_sources([written({"text": ["something", None, " ", "else"]})], held_out_percent=0)
    assert len(sources.documents) == 2
    assert "Left out 2 rows of tables without text." in sources.notes


def test_the_column_is_chosen_as_in_any_table(written):
    path = written({"question": TEXTS, "answer": [text[::-1] for text in TEXTS]})
    with pytest.raises(UnclearColumn, match="--text-column"):
        open_sources([path])
    sources = open_sources([path], text_column="answer", held_out_percent=0)
    assert next(sources.pieces()).text == TEXTS[0][::-1].replace("\r\n", "\n")


def test_it_is_known_by_what_is_in_it(written):
    path = written({"text": TEXTS}, name="table.bin")
    assert "as a Parquet table, whatever the name says" in open_reader(path).told_kind


def test_one_that_is_damaged_or_cut_short_is_a_sentence(written):
    path = written({"text": TEXTS}, compression="none")
    content = path.read_bytes()
    for broken in (content[:-50], content[:200]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"a whole Parquet table in .*damaged"):
            open_sources([path])


def test_one_that_is_packed_is_refused(written):
    path = written({"text": TEXTS})
    path.with_suffix(".parquet.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(Unreadable, match="a Parquet table that is packed: unpack it first"):
        open_reader(path.with_suffix(".parquet.gz"))


def test_an_empty_table_has_no_documents(written):
    arrow = pytest.importorskip("pyarrow")
    path = written({"text": arrow.array([], arrow.string())})
    with pytest.raises(DataError, match="some text"):
        open_sources([path])


def test_without_pyarrow_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and more")
    with pytest.raises(DataError, match=r"pip install 'pellucid\[parquet\]'"):
        open_sources([tmp_path / "x.parquet"])
