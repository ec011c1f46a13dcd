"""Attention at a glance: the model's own weights, of a sentence that it never read."""

import pytest
import torch

from pellucid import loading
from pellucid.report import attention as room
from pellucid.report.attention import _direction, _sentence, attention, sentence_ids
from pellucid.text import load_tokenizer
from pellucid.train.material import reopen_material


@pytest.fixture
def loaded(run):
    return loading.load(run.path)


@pytest.fixture
def material(run):
    return reopen_material(run.tokens_path, run.tokenizer_path)


def test_every_head_of_every_layer_has_its_picture(record, loaded, material):
    shown = attention(record, loaded, material)
    assert shown.count("<img ") == 2  # one layer of two heads
    assert "Layer 1, head 2 reads" in shown
    assert "&lt;|endoftext|&gt;" in shown


def test_the_pictures_are_of_the_weights_that_the_model_used(record, loaded, material, monkeypatch):
    drawn = []
    monkeypatch.setattr(room, "picture", lambda matrix, words: drawn.append(torch.tensor(matrix)) or room.Html(""))
    attention(record, loaded, material)
    for weights in drawn:
        torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights)), atol=1e-5, rtol=0)
        assert weights.triu(1).max() == 0


def test_a_model_that_looks_ahead_is_seen_looking_ahead(record, loaded, material, monkeypatch):
    drawn = []
    monkeypatch.setattr(room, "picture", lambda matrix, words: drawn.append(torch.tensor(matrix)) or room.Html(""))
    monkeypatch.setattr(
        "pellucid.nn.multi_head.causal_mask", lambda places, num_keys, window: torch.ones(len(places), num_keys) > 0
    )
    attention(record, loaded, material)
    assert drawn[0].triu(1).max() > 0.01


def test_the_sentence_is_of_the_held_out_text(record, loaded, material, run):
    ids = sentence_ids(record, loaded, material)
    written = loaded.tokenizer.decode(ids[1:])
    assert ids[0] == loaded.tokenizer.end_of_text_id
    assert len(ids) <= loaded.model.config.context_length
    assert written in loaded.tokenizer.decode(material.data.held_out[0].tokens)


def test_without_held_out_text_it_is_of_a_sample(record, loaded):
    written = loaded.tokenizer.decode(sentence_ids(record, loaded, None)[1:])
    assert written
    assert written in record.last("Finished")["sample"]


def test_without_any_text_there_is_a_sentence_of_ours(record, loaded):
    record.others.clear()
    assert "no sentence to show" in attention(record, loaded, None)


def test_too_large_a_model_is_not_run(record, loaded, monkeypatch):
    monkeypatch.setattr(room, "MOST_PARAMETERS", 10)
    assert "too many for pictures" in attention(record, loaded, None)


def test_a_page_holds_no_more_pictures_than_a_phone_can(record, loaded, material, monkeypatch):
    maps = room.attention_maps(loaded.model, torch.tensor([1, 2]))
    monkeypatch.setattr(room, "attention_maps", lambda model, ids: maps * 30)
    monkeypatch.setattr(room, "MOST_PICTURES", 20)
    shown = attention(record, loaded, material)
    assert shown.count("<img ") == 20
    assert "10 of 30 layers are shown" in shown


@pytest.mark.parametrize(
    ("passage", "chosen"),
    [
        ("he end of one. This is a whole sentence. Another one that is whole.", "This is a whole sentence."),
        ("end\nA line that is long enough\nnext", "A line that is long enough"),
        ("结尾。这是一个足够长的完整的中文句子吗？下一句", "这是一个足够长的完整的中文句子吗？"),
        ("پایان. این یک جمله‌ی کامل فارسی است؟ بعد", "این یک جمله‌ی کامل فارسی است؟"),
        ("no end here", "no end here"),
        ("", ""),
    ],
)
def test_a_sentence_is_found_in_any_script(passage, chosen):
    assert _sentence(passage) == chosen


@pytest.mark.parametrize(
    ("shown", "way"), [("·the", "ltr"), ("·سلام", "rtl"), ("12", "ltr"), ("中", "ltr"), ("", "ltr")]
)
def test_tokens_stand_in_the_direction_of_their_script(shown, way):
    assert _direction(shown) == way


def test_tokens_that_are_markup_are_text(record, loaded, material, monkeypatch):
    monkeypatch.setattr(room, "_sentence", lambda passage: "the cat")
    spans = room.spans_of_ids

    def hostile(tokenizer, ids):
        for span in spans(tokenizer, ids):
            yield type(span)(span.token_id, b"<b>", "<b>", False)

    monkeypatch.setattr(room, "spans_of_ids", hostile)
    assert "<bdi>&lt;b&gt;</bdi>" in attention(record, loaded, material)


def test_half_a_character_is_shown_as_bytes(tmp_path, trained):
    tokenizer = load_tokenizer(trained)
    assert room._tokens(tokenizer, [tokenizer.end_of_text_id]).count("<bdi>") == 1
