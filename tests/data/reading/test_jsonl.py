"""JSON lines: one field, each line a document; a broken line is named by its number."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading.columns import UnclearColumn
from pellucid.data.reading.jsonl import JsonLines
from pellucid.data.reading.reader import ReadingOptions, told
from pellucid.errors import DataError


@pytest.fixture
def file(tmp_path):
    def write(*values, raw: str | None = None, **options) -> JsonLines:
        content = "".join(json.dumps(value) + "\n" for value in values) if raw is None else raw
        (tmp_path / "x.jsonl").write_bytes(content.encode())
        return JsonLines(tmp_path / "x.jsonl", ReadingOptions(**options))

    return write


def read(reader: JsonLines) -> list[str]:
    return ["".join(blocks) for blocks in reader.documents()]


def refusal(reader: JsonLines) -> str:
    with pytest.raises(DataError) as caught:
        read(reader)
    return str(caught.value)


def test_each_line_is_a_document_and_the_column_is_told(file):
    reader = file({"id": 1, "text": "one\ntwo"}, {"text": "three", "extra": {"a": [1]}})
    assert read(reader) == ["one\ntwo", "three"]
    assert told(reader.changes) == ["Read the column “text” of 1 table."]


def test_strings_alone_are_documents(file):
    assert read(file("one", "two")) == ["one", "two"]


def test_the_field_asked_for_is_read(file):
    assert read(file({"text": "one", "title": "two"}, text_column="title")) == ["two"]


def test_lines_without_text_are_left_out_and_told(file):
    reader = file({"text": "one"}, {"text": None}, {"text": 3}, {"text": ""}, {"other": "x"}, text_column="text")
    assert read(reader) == ["one"]
    assert "Left out 4 rows of tables without text." in told(reader.changes)


def test_line_ends_within_are_made_even_and_told(file):
    reader = file({"text": "one\r\ntwo"})
    assert read(reader) == ["one\ntwo"]
    assert "Turned 1 line end from CR LF into LF." in told(reader.changes)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"text": "b"', "truncated"),
        ("not json", "malformed"),
        ("[1, 2]", "neither an object nor a string but list"),
        ("3", "neither an object nor a string but int"),
        ("[" * 100_000, "recursion"),
        ('{"text": "\\ud800"}', "truncated"),
    ],
)
def test_a_broken_line_is_named_by_its_number(file, line, words):
    message = refusal(file(raw=f'{{"text": "a"}}\n\n{line}\n'))
    assert "line 3 of" in message
    assert words in message.lower()


def test_an_unclear_field_is_asked_about(file):
    with pytest.raises(UnclearColumn, match="“question”, “answer”"):
        read(file({"question": "What is it that you want?", "answer": "Nothing at all, thank you."}))


def test_objects_without_any_string_are_asked_about(file):
    with pytest.raises(UnclearColumn, match="none with text"):
        read(file({"a": 1}))


@pytest.mark.parametrize("raw", ["", "\n \n"])
def test_an_empty_file_has_no_documents(file, raw):
    assert read(file(raw=raw)) == []


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=6), st.booleans())
def test_rows_written_come_back_but_for_blank_ones(tmp_path_factory, texts, ascii_only):
    path = tmp_path_factory.mktemp("jsonl") / "x.jsonl"
    lines = "".join(json.dumps({"text": text, "n": 1}, ensure_ascii=ascii_only) + "\n" for text in texts)
    path.write_bytes(lines.encode())
    assert read(JsonLines(path)) == [text.replace("\r\n", "\n") for text in texts if text.strip()]
