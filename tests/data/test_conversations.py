"""Rows hold whole conversations, kept apart; only answers are scored, their ends among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.data import IGNORED, ChatBatches, ConversationRows, TokenFile, TokenWriter
from pellucid.data.conversations import packed
from pellucid.errors import ConfigError, DataError
from tests.data.chat_files import chat_tokenizer

TOKENIZER = chat_tokenizer()
CHATS = [([1, 2, 3, 4], [0, 0, 1, 1]), ([5, 6, 7, 8, 9, 10], [0, 1, 1, 0, 1, 0]), ([11, 12], [0, 1])]


@pytest.fixture
def tokens(tmp_path):
    with TokenWriter(tmp_path / "x.tokens", TOKENIZER, text="") as writer:
        writer.kind = "chats"
        for ids, is_answer in CHATS:
            writer.add_chat(np.array(ids), np.array(is_answer, dtype=bool), characters=len(ids), tenth=0)
    return TokenFile.open(tmp_path / "x.tokens", tokenizer=TOKENIZER)


def test_a_file_of_chats_knows_its_answers(tokens):
    assert tokens.header.kind == "chats"
    assert [tokens.read(*span).tolist() for span in tokens.answers.tolist()] == [[3, 4], [6, 7], [9], [12]]
    assert tokens.num_scored == 6
    for start in range(len(tokens)):
        for stop in range(start, len(tokens) + 1):
            assert tokens.is_scored(start, stop).tolist() == tokens.is_scored(0, len(tokens))[start:stop].tolist()


def test_a_row_holds_whole_conversations_side_by_side(tokens):
    end = TOKENIZER.end_of_text_id
    inputs, targets, document_ids, positions = (part[0].tolist() for part in ConversationRows(tokens, 10).rows([0]))
    assert inputs == [5, 6, 7, 8, 9, 1, 2, 3, 11, end]
    no = IGNORED
    assert targets == [6, 7, no, 9, no, no, 3, 4, 12, no]
    assert document_ids == [0, 0, 0, 0, 0, 1, 1, 1, 2, 3]
    assert positions == [0, 1, 2, 3, 4, 0, 1, 2, 0, 0]


def test_every_conversation_comes_once_in_an_epoch_and_each_epoch_has_its_order(tokens):
    batches = ChatBatches(tokens, context_length=5, batch_size=1, seed=0)
    assert batches.rows_per_epoch == 2
    epochs = [[batches.at(step)[0][0].tolist() for step in (first, first + 1)] for first in range(0, 20, 2)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert any(epoch != epochs[0] for epoch in epochs)
    assert batches.epochs_after(3) == 1.5


def test_a_batch_is_a_pure_function_of_seed_and_step(tokens):
    one, other = (ChatBatches(tokens, context_length=5, batch_size=3, seed=1) for _ in range(2))
    for step in (7, 0, 7, 3):
        assert all((a == b).all() for a, b in zip(one.at(step), other.at(step), strict=True))
    assert (one.at(4, rows=slice(1, 3))[0] == one.at(4)[0][1:3]).all()


def test_a_conversation_longer_than_a_row_is_refused(tokens):
    with pytest.raises(DataError, match="at most 5 tokens, but got one of 6"):
        ConversationRows(tokens, 4)


def test_sizes_are_positive(tokens):
    with pytest.raises(ConfigError, match="at least 1"):
        ChatBatches(tokens, context_length=5, batch_size=0, seed=0)


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(20, 40))
def test_boxes_hold_everything_once_and_no_more_than_they_can(lengths, room):
    boxes = packed(lengths, room=room)
    assert sorted(number for box in boxes for number in box) == list(range(len(lengths)))
    assert all(sum(lengths[number] for number in box) <= room for box in boxes)
    assert len(boxes) <= 11 / 9 * max(1, -(-sum(lengths) // room)) * 2 + 1
