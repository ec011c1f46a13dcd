import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import windows
from pellucid.errors import ConfigError, DataError
from pellucid.inspection import predictions, surprise, surprises
from pellucid.loss import summed_cross_entropy
from tests.train.small_run import small_model
from tests.whole.models import ARCHITECTURES, SIZES, random_model

VOCAB, CONTEXT = 24, 16  # of the small model


@pytest.fixture(scope="module")
def model():
    return small_model()


def random_ids(length, seed=0):
    return np.random.default_rng(seed).integers(0, VOCAB, length)


@torch.no_grad()
def naive(model, ids, stride, context=CONTEXT):
    """Token by token: the window that scores each is found by counting, and read alone."""
    found, end = [], context
    for place in range(1, len(ids)):
        if place > end:
            end += stride
        first = end - context
        logits = model(torch.as_tensor(ids[first:place])[None].long())[0, -1].double()
        found.append(-float(logits.log_softmax(-1)[ids[place]]))
    return found


@pytest.mark.parametrize("stride", [1, 5, 8, 15, 16])
@pytest.mark.parametrize("length", [0, 1, 2, 15, 16, 17, 18, 33, 70])
def test_it_is_what_a_loop_over_single_tokens_finds(model, length, stride):
    ids = random_ids(length)
    assert surprises(model, [ids], stride=stride)[0] == pytest.approx(naive(model, ids, stride), abs=2e-5)


@given(st.lists(st.integers(0, 60), max_size=6), st.integers(1, CONTEXT), st.integers(1, 40))
def test_every_token_is_scored_once_and_from_enough_before_it(lengths, stride, at_once):
    config = small_model().config
    for length in lengths:
        places = surprise._windows(length, config, stride)
        scored = [place for _, first, stop in places for place in range(first, stop)]
        assert scored == list(range(1, length))
        for start, first, stop in places:
            assert first - start >= min(first, CONTEXT - stride + 1)  # ids before the one that is scored
            assert 1 <= stop - start - 1 <= CONTEXT


@settings(max_examples=20)
@given(st.lists(st.integers(0, 40), max_size=4), st.integers(1, CONTEXT), st.integers(1, 70))
def test_texts_side_by_side_are_as_each_alone_however_much_is_read_at_once(lengths, stride, at_once):
    model, texts = small_model(), [random_ids(length, seed) for seed, length in enumerate(lengths)]
    alone = [surprises(model, [ids], stride=stride)[0] for ids in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surprise, "TOKENS_AT_ONCE", at_once)
        patch.setattr(surprise, "LOGITS_AT_ONCE", at_once * VOCAB)
        together = surprises(model, texts, stride=stride)
    assert [len(nats) for nats in together] == [max(0, length - 1) for length in lengths]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=2e-5)


def test_a_stride_of_the_context_is_what_training_sums(model):
    ids = random_ids(70)
    total = 0.0
    for inputs, targets in windows(ids, context_length=CONTEXT, batch_size=2, end_of_text_id=VOCAB + 1):
        with torch.no_grad():
            total += float(summed_cross_entropy(model(inputs.clamp(max=VOCAB - 1)), targets)[0])
    assert float(surprises(model, [ids], stride=CONTEXT)[0].sum()) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_reads_ten_contexts_and_one_token_more(name):
    model = random_model(dataclasses.replace(ARCHITECTURES[name], context_length=CONTEXT))
    for length in (CONTEXT, CONTEXT + 1, 10 * CONTEXT + 1):
        ids = np.random.default_rng(length).integers(0, SIZES["vocab_size"], length)
        assert surprises(model, [ids], stride=7)[0] == pytest.approx(naive(model, ids, 7), abs=2e-4)


def test_never_are_all_logits_in_memory(model, monkeypatch):
    asked, logits = [], model.logits
    monkeypatch.setattr(surprise, "LOGITS_AT_ONCE", 10 * VOCAB)
    monkeypatch.setattr(model, "logits", lambda hidden: asked.append(hidden.shape[1]) or logits(hidden))
    surprises(model, [random_ids(200)], stride=4)
    predictions(model, random_ids(100), stride=4)
    assert max(asked) == 10
    assert sum(asked) == 199 + 99  # and none of a token that is not scored


def test_the_default_is_half_the_context(model):
    ids = random_ids(50)
    assert surprises(model, [ids])[0].tolist() == surprises(model, [ids], stride=CONTEXT // 2)[0].tolist()


def test_dropout_sleeps_no_random_number_is_drawn_and_the_mode_comes_back():
    model, ids = small_model(dropout=0.5).train(), random_ids(40)
    state = torch.get_rng_state()
    one, two = (surprises(model, [ids])[0].tolist() for _ in "12")
    assert one == two
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_genuine_end_of_text_within_a_text_is_a_token_as_any_other(model):
    ids = random_ids(40)
    ids[[0, 7, 8, 20]] = 0
    assert surprises(model, [ids, random_ids(9)])[0] == pytest.approx(naive(model, ids, CONTEXT // 2), abs=2e-5)


def test_what_comes_later_changes_nothing(model):
    ids = random_ids(40)
    changed = np.append(ids[:-1], (ids[-1] + 1) % VOCAB)
    assert (surprises(model, [ids])[0][:-1] == surprises(model, [changed])[0][:-1]).all()


def test_ids_that_stand_for_nothing_are_never_expected_nor_accepted():
    model = small_model(vocab_size=VOCAB + 8, num_unused_ids=8)
    ids = random_ids(30)
    found = predictions(model, ids, likeliest=100)
    assert found.likeliest.shape == (29, VOCAB)
    assert found.likeliest.max() < VOCAB
    assert np.exp(-found.likeliest_nats).sum(axis=1) == pytest.approx(np.ones(29), abs=1e-5)
    with pytest.raises(DataError, match=f"ids from 0 to {VOCAB - 1}.*id {VOCAB}"):
        surprises(model, [np.array([0, VOCAB])])


def test_an_id_outside_the_vocabulary_is_a_sentence(model):
    with pytest.raises(DataError, match="from 0 to 23, which the model has, but got id 70000"):
        surprises(model, [random_ids(5), np.array([3, 70_000])])
    with pytest.raises(DataError, match="id -1"):
        surprises(model, [np.array([3, -1])])


@pytest.mark.parametrize("stride", [0, -1, CONTEXT + 1])
def test_a_stride_that_cannot_be_is_a_sentence(model, stride):
    with pytest.raises(ConfigError, match=f"a stride from 1 to {CONTEXT}, the model's context, but got {stride}:"):
        surprises(model, [random_ids(5)], stride=stride)
    with pytest.raises(ConfigError):
        surprises(model, [], stride=stride)


def test_progress_ends_at_the_number_of_scored_tokens(model):
    heard = []
    surprises(model, [random_ids(40), random_ids(3)], on_progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 41


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_number_types_are_read_as_they_are(dtype):
    ids = random_ids(40)
    exact = surprises(small_model().double(), [ids])[0]
    error = np.abs(surprises(small_model().to(dtype), [ids])[0] - exact).max()
    assert error < {torch.float64: 1e-6, torch.bfloat16: 0.3}[dtype]  # eight bits of a logit near 5


def test_predictions_are_of_the_same_windows_and_name_what_was_likeliest(model):
    ids = random_ids(60)
    nats = surprises(model, [ids], stride=4)[0]
    whole = predictions(model, ids, stride=4)
    assert whole.nats == pytest.approx(nats, abs=1e-5)
    part = predictions(model, ids, first=20, stop=31, stride=4)
    assert part.nats == pytest.approx(nats[19:30], abs=1e-5)
    assert part.likeliest.tolist() == whole.likeliest[19:30].tolist()
    hits = whole.ranks <= surprise.LIKELIEST
    assert hits.any()
    assert not hits.all()
    for row in np.flatnonzero(hits):
        place = whole.ranks[row] - 1
        assert whole.likeliest[row, place] == ids[row + 1]
        assert whole.likeliest_nats[row, place] == pytest.approx(whole.nats[row], abs=1e-6)
    assert (np.diff(whole.likeliest_nats, axis=1) >= 0).all()


def test_a_model_that_knows_nothing_spends_the_logarithm_of_its_vocabulary():
    model = small_model()
    with torch.no_grad():
        model.lm_head.weight.zero_()
    assert surprises(model, [random_ids(30)])[0] == pytest.approx([math.log(VOCAB)] * 29)
