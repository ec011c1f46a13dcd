import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import GenerationError
from pellucid.generate import draw, keep_min_p, keep_top_k, keep_top_p, likeliest, sample, with_temperature
from pellucid.generate.sampling import new_seed
from pellucid.generation_config import GenerationConfig

INF = math.inf


def kept(logits):
    return logits.isfinite().nonzero().flatten().tolist()


def log(*probabilities):
    return torch.tensor(probabilities).log()


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


logit_lists = st.lists(st.floats(-50, 50, width=32) | st.just(-INF), min_size=1, max_size=30).filter(
    lambda values: max(values) > -INF
)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("temperature", [0.0, 1e-8, 1e-4])
def test_no_temperature_and_a_tiny_one_are_greedy(dtype, temperature):
    logits = torch.randn(50, generator=stream()).to(dtype)
    config = GenerationConfig(temperature=temperature)
    assert {sample(logits, config, stream(seed)) for seed in range(20)} == {int(logits.argmax())}


@pytest.mark.parametrize("temperature", [0.0, 1e-8, 1e-4])
def test_greedy_takes_no_number_from_the_stream(temperature):
    used, fresh = stream(), stream()
    sample(torch.randn(5), GenerationConfig(temperature=temperature), used)
    assert torch.equal(used.get_state(), fresh.get_state())


def test_a_huge_temperature_makes_all_ids_alike():
    config, numbers = GenerationConfig(temperature=1e4), stream()
    ids = [sample(torch.tensor([0.0, 60.0, -60.0]), config, numbers) for _ in range(3000)]
    assert all(abs(ids.count(token_id) - 1000) < 150 for token_id in range(3))  # 150: nearly six standard deviations


def test_a_temperature_divides_the_logits():
    logits = torch.randn(9, dtype=torch.float64)
    torch.testing.assert_close(with_temperature(logits, 0.7).softmax(0), (logits / 0.7).softmax(0))


@pytest.mark.parametrize("size", [1e4, 1e30, 3e38])
def test_no_size_of_logits_overflows(size):
    logits = torch.tensor([-1.0, 1.0, 0.5]) * size
    assert sample(logits, GenerationConfig(temperature=0.01), stream()) == 1


def test_of_ties_the_lowest_id_is_the_likeliest():
    assert likeliest(torch.tensor([0.0, 7.0, 7.0])) == 1
    assert likeliest(torch.tensor([0.0, 100.0, 100.0001])) == 1  # 1e-6 apart: rounding, not a lead
    assert likeliest(torch.tensor([0.0, 7.0, 7.01])) == 2


@pytest.mark.parametrize("top_p", [0.0, 1e-8, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_top_p_never_drops_the_likeliest(top_p, dtype):
    logits = torch.randn(100, generator=stream()).to(dtype)
    ids = kept(keep_top_p(logits.float(), top_p))
    assert int(logits.argmax()) in ids
    assert len(ids) == {0.0: 1, 1e-8: 1, 1e-3: 1, 1.0: 100}.get(top_p, len(ids))
    if top_p < 0.5:
        config = GenerationConfig(top_p=top_p, temperature=1.0)
        assert {sample(logits, config, stream(seed)) for seed in range(10)} == {int(logits.argmax())}


@pytest.mark.parametrize(
    ("probabilities", "top_p", "count"),
    [
        ((0.5, 0.41, 0.09), 0.9, 2),
        ((0.5, 0.3, 0.1, 0.1), 0.8, 2),
        ((0.1, 0.3, 0.1, 0.5), 0.8, 2),
        ((0.5, 0.3, 0.1, 0.1), 0.81, 3),
        ((0.5, 0.3, 0.1, 0.1), 0.5, 1),
        ((0.5, 0.3, 0.1, 0.1), 0.51, 2),
        ((0.25, 0.25, 0.25, 0.25), 0.5, 2),
        ((0.5, 0.3, 0.1, 0.1), 1.0, 4),
        ((1 - 3e-7, 1e-7, 1e-7, 1e-7), 1.0, 4),
    ],
)
def test_top_p_keeps_the_token_that_reaches_it_and_no_more(probabilities, top_p, count):
    for dtype in (torch.float32, torch.float64):
        assert len(kept(keep_top_p(torch.tensor(probabilities, dtype=dtype).log(), top_p))) == count


@given(logit_lists, st.floats(0, 1))
def test_top_p_keeps_a_likeliest_set_of_enough_probability(values, top_p):
    logits = torch.tensor(values, dtype=torch.float64)
    ids = kept(keep_top_p(logits, top_p))
    probabilities = logits.softmax(0)
    assert probabilities[ids].sum() >= top_p - 2e-6
    others = [token_id for token_id in range(len(values)) if token_id not in ids]
    if others and values:
        assert probabilities[ids].min() >= probabilities[others].max()
    if len(ids) > 1 and top_p < 1:
        assert probabilities[ids].sum() - probabilities[ids].min() < top_p


@given(logit_lists, st.integers(1, 40))
def test_top_k_keeps_the_k_likeliest(values, top_k):
    logits = torch.tensor(values)
    ids = kept(keep_top_k(logits, top_k))
    expected = sorted(range(len(values)), key=lambda token_id: (-values[token_id], token_id))[:top_k]
    assert ids == sorted(token_id for token_id in expected if values[token_id] > -INF)


@pytest.mark.parametrize(("min_p", "ids"), [(0.0, [0, 1, 2]), (0.2, [0, 1, 2]), (0.5, [0, 1]), (1.0, [0])])
def test_min_p_is_a_share_of_the_likeliest(min_p, ids):
    assert kept(keep_min_p(log(0.5, 0.25, 0.1), min_p)) == ids


def test_what_is_kept_is_not_changed():
    logits = torch.randn(20)
    for narrowed in (keep_top_k(logits, 5), keep_top_p(logits, 0.5), keep_min_p(logits, 0.5)):
        ids = kept(narrowed)
        assert torch.equal(narrowed[ids], logits[ids])
        assert 0 < len(ids) < 20


def test_the_order_is_temperature_then_top_k_then_top_p_then_min_p():
    logits = log(0.4, 0.3, 0.2, 0.1)
    reached = lambda **settings: {  # noqa: E731
        sample(logits, GenerationConfig(**settings), stream(seed)) for seed in range(300)
    }
    # Temperature first: at 0.25 the probabilities are .71 .22 .04 .00, so top_p .7 keeps one; untempered, two.
    assert reached(temperature=0.25, top_p=0.7) == {0}
    assert reached(temperature=1.0, top_p=0.7) == {0, 1}
    # top_k before top_p: of 2 kept, the first has 4/7 < .6, so both stay; .6 of all four would need two as well,
    # but .45 keeps one of the two (4/7 reaches it) where of all four it needs two.
    assert reached(temperature=1.0, top_p=0.45) == {0, 1}
    assert reached(temperature=1.0, top_p=0.45, top_k=2) == {0}
    # min_p last: its share is of the likeliest, which no earlier step changes.
    assert reached(temperature=1.0, top_p=0.95, min_p=0.6) == {0, 1}


def test_ids_are_drawn_with_their_probabilities():
    numbers, probabilities = stream(), torch.tensor([0.1, 0.0, 0.6, 0.3])
    ids = [draw(probabilities.log(), numbers) for _ in range(20_000)]
    shares = torch.bincount(torch.tensor(ids), minlength=4) / len(ids)
    torch.testing.assert_close(shares, probabilities, atol=0.015, rtol=0)  # 0.015: four standard deviations
    assert 1 not in ids


@given(logit_lists, st.integers(0, 2**31))
def test_an_impossible_id_is_never_drawn(values, seed):
    numbers = stream(seed)
    for _ in range(20):
        assert values[draw(torch.tensor(values), numbers)] > -INF


@pytest.mark.parametrize("u", [0.0, 0.5, 1 - 2**-53])
def test_even_the_last_number_of_the_stream_falls_on_an_id(monkeypatch, u):
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor(u, dtype=torch.float64))
    assert draw(torch.tensor([-INF, 0.0, 1.0, -INF]), stream()) in (1, 2)


def test_a_draw_takes_one_number_whatever_the_vocabulary():
    states = []
    for size in (2, 50_000):
        numbers = stream()
        draw(torch.zeros(size), numbers)
        states.append(numbers.get_state())
    assert torch.equal(*states)


def test_the_global_stream_is_left_alone():
    before = torch.get_rng_state()
    sample(torch.randn(10, generator=stream()), GenerationConfig(temperature=1.0, top_k=3, top_p=0.9), stream())
    new_seed()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("bad", [math.nan, INF])
def test_damaged_logits_are_a_sentence(bad):
    for temperature in (0.0, 1.0):
        with pytest.raises(GenerationError, match="NaN or infinity"):
            sample(torch.tensor([0.0, bad]), GenerationConfig(temperature=temperature), stream())


def test_new_seeds_differ():
    assert len({new_seed() for _ in range(20)}) == 20
