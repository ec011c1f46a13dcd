import math

import numpy as np
import pytest
import torch

from pellucid.data import Document, prepare, sources_of_texts
from pellucid.text import character_tokenizer
from pellucid.train.evaluation import evaluate
from tests.train.small_run import small_model, small_sources

NEW = "Ω"  # held out only


@pytest.fixture
def data(tmp_path):
    text = small_sources().pieces()
    text = "".join(piece.text for piece in text)
    text = text[:2990] + NEW + text[2991:]  # in the last twentieth of the last tenth
    sources = sources_of_texts([Document("words.txt", text)])
    tokenizer = character_tokenizer([text.replace(NEW, "")])
    return prepare(sources, tokenizer, tmp_path), tokenizer


@pytest.fixture
def model(data):
    return small_model(vocab_size=data[1].vocab_size)


def naive_bits(model, piece, end_of_text_id):
    """One window at a time, one token at a time."""
    nats, context = 0.0, model.config.context_length
    ids = torch.from_numpy(piece.tokens.astype(np.int64))
    for place in range(1, len(ids)):
        if ids[place] == end_of_text_id:
            continue
        first = (place - 1) // context * context
        logits = model(ids[first:place][None])[0, -1]
        nats -= float(logits.log_softmax(-1)[ids[place]])
    return nats / math.log(2)


@torch.no_grad()
def test_it_is_the_sum_of_single_surprises_over_every_held_out_character(data, model):
    prepared, tokenizer = data
    score = evaluate(model, prepared, tokenizer.end_of_text_id)
    expected = [
        naive_bits(model, piece, tokenizer.end_of_text_id) + piece.escaped * prepared.escape_bits
        for piece in prepared.held_out
    ]
    assert score.bits == pytest.approx(expected, rel=1e-5)
    assert [piece.escaped for piece in prepared.held_out] == [0] * 9 + [1]
    assert sum(score.characters) == prepared.held_out_characters == 150
    assert score.bits_per_character == pytest.approx(sum(expected) / 150, rel=1e-5)


def test_dropout_sleeps_and_no_random_number_is_drawn(data):
    prepared, tokenizer = data
    model = small_model(vocab_size=tokenizer.vocab_size, dropout=0.5).train()
    state = torch.get_rng_state()
    scores = [evaluate(model, prepared, tokenizer.end_of_text_id) for _ in range(2)]
    assert scores[0] == scores[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training


def test_a_context_longer_than_every_passage_changes_nothing(data):
    prepared, tokenizer = data
    scores = []
    for context_length in (16, 400):  # the longest passage has 17 ids
        model = small_model(vocab_size=tokenizer.vocab_size, context_length=context_length)
        scores.append(evaluate(model, prepared, tokenizer.end_of_text_id).bits)
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)
