"""Chats are read in both usual forms; what is no chat is refused by its line, what teaches nothing is told."""

import gzip
import json

import pytest

from pellucid.data import are_chats, open_chats
from pellucid.errors import DataError
from tests.data.chat_files import a_chat, animal_chats, chat_file


def turns(path, **how):
    return [[(m.role, m.content) for m in chat] for _, chat in open_chats([path], **how).conversations()]


def test_both_forms_are_the_same_chat(tmp_path):
    other = {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]}
    read = [
        turns(chat_file(tmp_path / name, [row])) for name, row in (("a.jsonl", a_chat("hi", "ho")), ("b.jsonl", other))
    ]
    assert read[0] == read[1] == [[("user", "hi"), ("assistant", "ho")]]


def test_content_in_parts_is_joined(tmp_path):
    parts = [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]
    row = {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "ho"}]}
    assert turns(chat_file(tmp_path / "a.jsonl", [row])) == [[("user", "hi"), ("assistant", "ho")]]


def test_copies_and_chats_without_an_answer_are_left_out_and_told(tmp_path):
    rows = [a_chat("hi", "ho"), a_chat("hi"), a_chat("hi", "ho"), {"messages": []}]
    sources = open_chats([chat_file(tmp_path / "a.jsonl", rows)])
    assert len(list(sources.conversations())) == len(sources.documents) == 1
    assert "Left out 2 conversations without an answer." in sources.notes
    assert "Left out 1 conversation that came before." in sources.notes


@pytest.mark.parametrize(
    ("row", "came"),
    [
        ({"text": "x"}, "a row without a list of messages"),
        ("x", "a row without a list of messages"),
        ({"messages": ["x"]}, "a message that is str"),
        ({"messages": [{"content": "x"}]}, "a message without a role"),
        ({"messages": [{"role": "user", "content": None}]}, "whose content is no text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "whose content is no text"),
    ],
    ids=str,
)
def test_what_is_no_chat_is_refused_by_its_line(tmp_path, row, came):
    with pytest.raises(DataError, match=f"in line 2 of .*, but got .*{came}"):
        open_chats([chat_file(tmp_path / "a.jsonl", [a_chat("hi", "ho"), row])])


def test_nothing_to_learn_is_refused(tmp_path):
    with pytest.raises(DataError, match="in which an assistant answers"):
        open_chats([chat_file(tmp_path / "a.jsonl", [a_chat("hi")])])


def test_files_are_known_by_their_first_row(tmp_path):
    chats, text = chat_file(tmp_path / "a.jsonl", animal_chats()), chat_file(tmp_path / "b.jsonl", [{"text": "hi"}])
    packed = tmp_path / "c.jsonl.gz"
    packed.write_bytes(gzip.compress(chats.read_bytes()))
    (tmp_path / "d.jsonl").write_text("no json")
    (tmp_path / "e.jsonl").write_text("")
    (tmp_path / "f.txt").write_text(json.dumps(a_chat("a", "b")))
    found = [
        are_chats(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "c.jsonl.gz", "d.jsonl", "e.jsonl", "f.txt", "g")
    ]
    assert found == [True, False, True, False, False, False, False]
    assert text.exists()


def test_one_in_twenty_is_held_out_and_of_few_the_last(tmp_path):
    many = [a_chat(f"q{n}", f"a{n}") for n in range(45)]
    split = open_chats([chat_file(tmp_path / "a.jsonl", many)]).split
    assert list(split.held_out_documents) == [19, 39]
    assert list(open_chats([chat_file(tmp_path / "b.jsonl", many[:7])]).split.held_out_documents) == [6]
    few = open_chats([chat_file(tmp_path / "c.jsonl", many[:4])])
    assert (few.held_out_percent, "fewer than 5" in few.notes[-1]) == (0, True)
    assert open_chats([chat_file(tmp_path / "d.jsonl", many)], held_out_percent=0).split.kind == "none"


def test_chats_that_change_under_a_run_are_noticed(tmp_path):
    sources = open_chats([chat_file(tmp_path / "a.jsonl", animal_chats())])
    chat_file(tmp_path / "a.jsonl", animal_chats()[:-1])
    with pytest.raises(DataError, match="to stay as it was"):
        list(sources.conversations())


def test_the_fingerprint_is_of_what_is_said_in_its_order(tmp_path):
    rows = animal_chats()
    prints = [
        open_chats([chat_file(tmp_path / "a.jsonl", one)]).fingerprint for one in (rows, rows, rows[::-1], rows[:-1])
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
