import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from pellucid.data import open_chats, prepare_chats
from pellucid.inspection import answer_costs, score_answers
from pellucid.text import CHATML, ChatTemplate
from tests.data.chat_files import animal_chats, chat_file, chat_tokenizer
from tests.train.small_run import small_model


@pytest.fixture
def chats(tmp_path):
    tokenizer = chat_tokenizer()
    sources = open_chats([chat_file(tmp_path / "chats.jsonl", animal_chats())], held_out_percent=25)
    how = {"context_length": 64}
    data = prepare_chats(sources, ChatTemplate(CHATML, tokenizer), tokenizer, tmp_path / "tokens", **how).data
    return small_model(vocab_size=tokenizer.vocab_size, context_length=128), tokenizer, data


def test_an_answer_costs_what_it_costs_alone_after_what_was_said(chats):
    model, _, data = chats
    file, (piece, *_) = data.held_out_chats, data.held_out
    starts = np.append(file.documents[:, 0], len(file) - 1)
    expected = 0.0
    model.eval()
    for number in piece.conversations:
        first, end = int(starts[number]) + 1, int(starts[number + 1])
        ids, scored = torch.from_numpy(file.read(first, end).astype(np.int64)), file.is_scored(first, end)
        with torch.no_grad():
            each = cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="none")
        expected += float(each[torch.from_numpy(scored[1:].copy())].sum())
    nats, ids = next(answer_costs(model, file, data.held_out, 64))
    assert math.isclose(nats, expected, rel_tol=1e-5)
    assert len(ids) < len(piece.tokens) / 2


def test_sizes_are_those_of_the_answers_alone(chats):
    model, tokenizer, data = chats
    scores = score_answers(model, tokenizer, data.held_out_chats, data.held_out, context_length=64)
    sounds = sum(score.characters for score in scores)
    assert sounds == data.held_out_characters
    assert sum(score.utf8_bytes for score in scores) == sounds  # the token that ends an answer writes nothing
    assert sum(score.tokens for score in scores) == data.held_out_chats.num_scored
