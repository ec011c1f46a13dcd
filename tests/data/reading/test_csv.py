"""Tables: one column, each row a document; quotes, line ends and huge cells as the standard has them."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading import csv as module
from pellucid.data.reading import lines
from pellucid.data.reading.columns import UnclearColumn
from pellucid.data.reading.csv import Table
from pellucid.data.reading.reader import ReadingOptions, told
from pellucid.errors import DataError

LONG = "I liked it from start to end and would see it again."


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes, name: str = "x.csv", **options) -> Table:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return Table(tmp_path / name, ReadingOptions(**options))

    return write


def read(reader: Table) -> list[str]:
    return ["".join(blocks) for blocks in reader.documents()]


def refusal(reader: Table) -> str:
    with pytest.raises(DataError) as caught:
        read(reader)
    return str(caught.value)


def test_each_row_is_a_document_and_the_column_is_told(file):
    reader = file(f"id,text\n1,{LONG}\n2,Not I.\n")
    assert read(reader) == [LONG, "Not I."]
    assert told(reader.changes) == ["Read the column “text” of 1 table."]
    assert reader.rows


def test_cells_hold_quotes_separators_and_line_ends(file):
    assert read(file('id,text\n1,"He said ""no"",\r\nthen left.\n\nFor good."\n2,b\n')) == [
        'He said "no",\nthen left.\n\nFor good.',
        "b",
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(file, separator):
    assert read(file(f'id{separator}text\n1{separator}"one, two; three"\n')) == ["one, two; three"]


def test_a_tsv_is_separated_by_tabs_whatever_stands_in_it(file):
    assert read(file("a,b;c,d;e\ttext\n1\tone\n", name="x.TSV")) == ["one"]


def test_the_column_asked_for_is_read(file):
    assert read(file(f"title,text\nA title,{LONG}\n", text_column="title")) == ["A title"]


def test_a_table_without_header_has_numbers_for_names(file):
    content = f"1,{LONG}\n2,{LONG[::-1]}\n"
    assert read(file(content)) == [LONG, LONG[::-1]]
    assert read(file(content, text_column="1")) == ["1", "2"]


def test_sentences_alone_have_no_header(file):
    assert read(file('"Hello, my friend"\n"Good day, sir"\n')) == ["Hello, my friend", "Good day, sir"]


def test_rows_without_text_are_left_out_and_told(file):
    reader = file(f"id,text\n1,{LONG}\n2,\n3\n\n4,  \n")
    assert read(reader) == [LONG]
    assert "Left out 3 rows of tables without text." in told(reader.changes)


def test_an_unclear_column_is_asked_about(file):
    with pytest.raises(UnclearColumn, match="“question”, “answer”"):
        read(file(f"question,answer\n{LONG},{LONG[::-1]}\n"))


def test_looking_for_the_column_alone_refuses_as_well(file):
    with pytest.raises(UnclearColumn):
        file("a,b\n1,2\n").check()


def test_a_row_with_too_many_cells_is_refused_with_its_line(file):
    message = refusal(file("id,text\n1,one\n2,two, or three\n"))
    assert "3 cells where the first row has 2 at line 3" in message


def test_a_quote_that_never_closes_is_refused(file, monkeypatch):
    assert "unexpected end of data" in refusal(file('id,text\n1,"one\n2,two\n'))
    monkeypatch.setattr(module, "LONGEST_LINE", 100)
    assert "field larger than field limit" in refusal(file('id,text\n1,"' + "one\n" * 100))


def test_a_stray_quote_is_refused_with_its_line(file):
    assert "at line 2" in refusal(file('id,text\n1,"one" or two\n'))


def test_a_cell_larger_than_pythons_limit_is_read_and_the_limit_stays(file):
    before = csv.field_size_limit()
    assert read(file("id,text\n1," + "x" * (before + 5) + "\n", text_column="text")) == ["x" * (before + 5)]
    assert csv.field_size_limit() == before


def test_a_line_without_end_is_refused(file, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    assert "lines of at most 1,000 characters" in refusal(file("text\n" + "x" * 2000))


def test_zero_bytes_are_data(file):
    assert read(file("id,text\n1,a\0b\n", text_column="text")) == ["a\0b"]


def test_another_encoding_is_asked_about(file):
    assert "--encoding cp1251" in refusal(file("id,text\n1,Все счастливые семьи похожи\n".encode("cp1251")))
    reader = file("id,text\n1,Все счастливые семьи\n".encode("cp1251"), encoding="cp1251")
    assert read(reader) == ["Все счастливые семьи"]


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_table_has_no_documents(file, content):
    assert read(file(content)) == []


def test_marks_and_line_ends_are_counted_once(file):
    reader = file(f"\ufeffid,text\r\n1,{LONG}\r\n")
    assert read(reader) == [LONG]
    assert told(reader.changes)[1:] == [
        "Dropped the byte-order mark at the start of 1 file.",
        "Turned 2 line ends from CR LF into LF.",
    ]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\ufeff")), max_size=6))
def test_rows_written_come_back_but_for_blank_ones(tmp_path_factory, texts):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([["id", "text"], *([str(number), text] for number, text in enumerate(texts))])
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    data = buffer.getvalue().encode()
    path.write_bytes(data)
    if sum(ord(c) < 32 for c in buffer.getvalue()) <= 0.05 * len(data):
        reader = Table(path, ReadingOptions(text_column="text"))
        assert read(reader) == [text for text in texts if text.strip()]
