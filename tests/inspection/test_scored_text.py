import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import Document, prepare, sources_of_texts
from pellucid.errors import ConfigError
from pellucid.inspection import Parts, score_documents, score_passages, scored_text, surprises
from pellucid.inspection.scored_text import TextScore
from pellucid.text import character_tokenizer, train_byte_pairs
from pellucid.train.evaluation import evaluate
from tests.train.small_run import small_model, small_sources, small_text

PRICE = 30.0
MIXED = "naïve café, 中文 and 👩\u200d👧!\n" * 20


@pytest.fixture(scope="module")
def letters():
    tokenizer = character_tokenizer([small_text()])
    return small_model(vocab_size=tokenizer.vocab_size), tokenizer


@pytest.fixture(scope="module")
def pairs():
    tokenizer = train_byte_pairs([MIXED], 280)
    return small_model(vocab_size=tokenizer.vocab_size), tokenizer


def scored(model, tokenizer, *texts, **settings):
    sources = sources_of_texts([Document(f"{number}.txt", text) for number, text in enumerate(texts)])
    return list(score_documents(model, tokenizer, sources, escape_bits=PRICE, **settings)), sources


def test_a_document_is_scored_from_an_end_of_text_on(letters):
    model, tokenizer = letters
    (document,), _ = scored(model, tokenizer, small_text(100))
    ids = np.concatenate(([tokenizer.end_of_text_id], tokenizer.encode(small_text(100))))
    expected = surprises(model, [ids])[0]
    assert document.nats == pytest.approx(expected, abs=1e-5)
    assert document.score.nats == pytest.approx(float(expected.sum()), rel=1e-5)
    assert document.score.tokens == document.score.characters == 100
    assert document.score.loss == pytest.approx(document.score.nats / 100)
    assert document.score.perplexity == pytest.approx(math.exp(document.score.loss))
    assert document.score.bits_per_character == pytest.approx(document.score.loss / math.log(2))


def test_bytes_and_characters_are_told_apart(pairs):
    (document,), sources = scored(*pairs, MIXED)
    score = document.score
    assert score.utf8_bytes == len(MIXED.encode()) == sources.utf8_bytes
    assert score.characters == len(MIXED)
    assert score.bits_per_byte * score.utf8_bytes == pytest.approx(score.bits_per_character * score.characters)


def test_a_document_knows_nothing_of_the_one_before(letters):
    alone, _ = scored(*letters, small_text(200, seed=1))
    after, _ = scored(*letters, small_text(300, seed=2), small_text(200, seed=1))
    assert after[1].nats == pytest.approx(alone[0].nats, abs=1e-5)


def test_what_the_tokenizer_cannot_write_costs_its_price_and_stays_in_the_denominator(letters):
    (plain,), _ = scored(*letters, "the cat sat on a mat")
    (document,), _ = scored(*letters, "theΩ cat sat on Ωa mat中")
    score = document.score
    assert (score.escaped, score.characters, score.tokens) == (3, 23, 20)
    assert score.bits == pytest.approx(plain.score.bits + 3 * PRICE, rel=1e-5)
    assert document.escaped.tolist() == [3, 16, 22]
    assert document.missing == "ΩΩ中"
    assert document.starts.tolist() == [place for place in range(22) if place not in (3, 16)]


def test_a_text_of_unknown_characters_alone_has_no_loss_but_bits(letters):
    (document,), _ = scored(*letters, "中文字典")
    assert (document.score.loss, document.score.perplexity) == (None, None)
    assert document.score.bits_per_character == PRICE


def test_every_token_is_placed_at_the_character_it_begins_in(pairs):
    model, tokenizer = pairs
    (document,), _ = scored(model, tokenizer, MIXED)
    place = 0
    data = MIXED.encode()
    for token_id, start in zip(document.ids, document.starts, strict=True):
        before = data[:place].decode("utf-8", "ignore")
        inside = len(data[:place]) != len(before.encode())
        assert start == len(before), (place, inside)
        place += len(tokenizer.token_bytes(int(token_id)))


@settings(max_examples=25)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 200))
def test_documents_side_by_side_are_as_each_alone(lengths, together):
    tokenizer = character_tokenizer([small_text()])
    model = small_model(vocab_size=tokenizer.vocab_size)
    texts = list(dict.fromkeys(small_text(length, seed) for seed, length in enumerate(lengths)))
    alone = [scored(model, tokenizer, text)[0][0] for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scored_text, "READ_TOGETHER", together)
        found, _ = scored(model, tokenizer, *texts)
    assert [document.score.name for document in found] == [f"{number}.txt" for number in range(len(texts))]
    for one, other in zip(found, alone, strict=True):
        assert one.score.nats == pytest.approx(other.score.nats, rel=1e-4)


def test_progress_ends_at_all_characters(letters):
    heard = []
    scored(*letters, small_text(300, seed=1), "aΩ" * 20, on_progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 340


def test_a_stride_that_cannot_be_is_a_sentence(letters):
    with pytest.raises(ConfigError, match="stride"):
        scored(*letters, "the cat", stride=17)


def test_parts_are_documents_if_there_are_ten_else_passages_else_none():
    assert Parts.of([50] * 10).kind == "documents"
    assert Parts.of([50] * 10).characters == (50,) * 10
    assert Parts.of([999, 8]).characters == (100, 101, 101, 100, 101, 101, 100, 101, 101, 101)
    assert Parts.of([999]).kind == "none"


@pytest.mark.parametrize("count", [1, 3, 12])
def test_the_bits_of_parts_add_up_and_each_is_of_its_own_characters(pairs, count):
    model, tokenizer = pairs
    texts = [MIXED[number:] + "é" * number for number in range(count)]
    documents, sources = scored(model, tokenizer, *texts)
    parts = Parts.of(sources.documents.characters.tolist())
    bits = parts.bits(documents)
    together = TextScore.of_all([document.score for document in documents])
    assert sum(bits) == pytest.approx(together.bits)
    assert sum(parts.characters) == together.characters
    assert "".join(parts.texts(sources)) == "".join(texts)
    assert tuple(map(len, parts.texts(sources))) == parts.characters
    if parts.kind == "documents":
        assert bits == pytest.approx([document.score.bits for document in documents])


def test_texts_of_parts_are_whole_though_read_in_pieces():
    text = small_text(200_000)  # a piece has 65,536 characters at most
    sources = sources_of_texts([Document("a", text)])
    parts = Parts.of([200_000])
    assert parts.texts(sources) == [text[start : start + 20_000] for start in range(0, 200_000, 20_000)]
    assert parts.texts(sources, most_characters=50) == [text[start : start + 50] for start in range(0, 200_000, 20_000)]


def test_escapes_belong_to_the_part_they_stand_in(letters):
    text = small_text(500) + "Ω" * 10 + small_text(990)
    documents, sources = scored(*letters, text)
    parts = Parts.of([1500])
    bits, plain = parts.bits(documents), np.array(parts.bits([_without_escapes(documents[0])]))
    assert np.flatnonzero(np.array(bits) - plain).tolist() == [3]
    assert sources.characters == 1500


def _without_escapes(document):
    return dataclasses.replace(document, escaped=document.escaped[:0])


def test_held_out_passages_with_a_stride_of_the_context_are_what_training_reports(tmp_path):
    sources = small_sources()
    text = "".join(piece.text for piece in sources.pieces())
    text = text[:2990] + "Ω" + text[2991:]
    tokenizer = character_tokenizer([text.replace("Ω", "")])
    data = prepare(sources_of_texts([Document("words.txt", text)]), tokenizer, tmp_path)
    model = small_model(vocab_size=tokenizer.vocab_size)
    found = score_passages(model, tokenizer, data.held_out, escape_bits=data.escape_bits, stride=16)
    expected = evaluate(model, data, tokenizer.end_of_text_id)
    assert [document.score.bits for document in found] == pytest.approx(expected.bits, rel=1e-6)
    assert TextScore.of_all([document.score for document in found]).bits_per_character == pytest.approx(
        expected.bits_per_character, rel=1e-6
    )
    assert sum(document.score.utf8_bytes for document in found) == 150


def test_an_end_of_text_within_a_passage_is_read_but_not_scored(tmp_path):
    documents = [Document("a", small_text(195, seed=1)), Document("b", small_text(1805, seed=2))]  # 190–200 is held out
    tokenizer = character_tokenizer([document.text for document in documents])
    data = prepare(sources_of_texts(documents), tokenizer, tmp_path)
    model = small_model(vocab_size=tokenizer.vocab_size)
    found = score_passages(model, tokenizer, data.held_out, escape_bits=data.escape_bits, stride=16)
    assert any(tokenizer.end_of_text_id in document.ids for document in found)
    assert [document.nats.sum() for document in found] == pytest.approx([one.score.nats for one in found], rel=1e-5)
    assert sum(document.score.tokens for document in found) == sum(piece.characters for piece in data.held_out)
    expected = evaluate(model, data, tokenizer.end_of_text_id)
    assert [document.score.bits for document in found] == pytest.approx(expected.bits, rel=1e-6)
