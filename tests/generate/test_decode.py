import pytest
import torch

from pellucid import presets
from pellucid.errors import GenerationError
from pellucid.generate import decode, decode_one, fit_prompt, generate_naively, likeliest, prefill, sample, visible_from
from pellucid.generate.decode import kept_length
from pellucid.generate.reading import keep_rows, new_cache
from pellucid.generation_config import GenerationConfig
from pellucid.model_config import ModelConfig
from pellucid.nn import KVCache, TransformerLM

SIZES = {"vocab_size": 40, "d_model": 32, "num_heads": 4, "num_layers": 2, "context_length": 12}
CONFIGS = {
    "rope": presets.default(**SIZES, num_kv_heads=2),
    "learned": presets.gpt2(**SIZES),
    "none": ModelConfig(**SIZES, positions="none"),
    "window": ModelConfig(**SIZES, window=5, layer_pattern=("local", "global")),
    "wide_heads": ModelConfig(**{**SIZES, "d_head": 16}, num_kv_heads=2, qk_norm="projection"),
}


@pytest.fixture(params=CONFIGS)
def model(request):
    torch.manual_seed(3)
    return TransformerLM(CONFIGS[request.param]).eval()


@pytest.fixture
def rope():
    torch.manual_seed(3)
    return TransformerLM(CONFIGS["rope"]).eval()


def prompt_of(length, seed=0):
    return torch.randint(40, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def write(model, prompts, choose=lambda _, logits: likeliest(logits), **options):
    written = [[] for _ in prompts]
    for number, token_id in decode(model, prompts, choose, **{"max_tokens": 10, **options}):
        written[number].append(token_id)
    return written


def seeded(*seeds, temperature=1.5):
    config = GenerationConfig(temperature=temperature)
    streams = [torch.Generator().manual_seed(seed) for seed in seeds]
    return lambda number, logits: sample(logits, config, streams[number])


@pytest.mark.parametrize("length", [1, 7, 12])
def test_the_fast_decoder_writes_what_the_naive_one_writes_far_past_the_context(model, length):
    prompt = prompt_of(length)
    assert write(model, [prompt], max_tokens=30) == [generate_naively(model, prompt, likeliest, 30)]


@pytest.mark.parametrize("length", [3, 12])
def test_it_does_so_when_ids_are_drawn(model, length):
    prompt, naive = prompt_of(length), seeded(5)
    expected = generate_naively(model, prompt, lambda logits: naive(0, logits), 20)
    assert write(model, [prompt], seeded(5), max_tokens=20) == [expected]


def test_every_logit_is_that_of_a_fresh_reading(model):
    prompt, seen = prompt_of(10), []
    (written,) = write(model, [prompt], lambda _, logits: seen.append(logits) or likeliest(logits), max_tokens=20)
    token_ids = prompt + written
    for step, logits in enumerate(seen):
        length = 10 + step
        visible = token_ids[visible_from(12, length) : length]
        torch.testing.assert_close(logits, model(torch.tensor([visible]))[0, -1], atol=1e-5, rtol=1e-5)


def test_a_batch_of_different_lengths_writes_what_each_writes_alone(model):
    prompts = [prompt_of(length, seed=length) for length in (1, 5, 12, 5)]
    together = write(model, prompts, max_tokens=20)
    assert together == [write(model, [prompt], max_tokens=20)[0] for prompt in prompts]


def test_it_does_so_when_ids_are_drawn_from_streams_of_their_own(model):
    prompts = [prompt_of(length, seed=length) for length in (1, 5, 11)]
    together = write(model, prompts, seeded(7, 8, 9), max_tokens=10)
    assert together == [write(model, [p], seeded(s), max_tokens=10)[0] for p, s in zip(prompts, (7, 8, 9), strict=True)]


def test_prefill_of_a_ragged_batch_gives_each_rows_own_logits(model):
    prompts = [prompt_of(length, seed=length) for length in (1, 5, 11)]
    logits = prefill(model, prompts, new_cache(model, 3, 12))
    for row, prompt in enumerate(prompts):
        torch.testing.assert_close(logits[row], model(torch.tensor([prompt]))[0, -1], atol=1e-5, rtol=1e-5)


def test_a_sequence_that_ends_leaves_the_others_as_they_were(rope):
    prompts = [prompt_of(length, seed=length) for length in (2, 9, 4)]
    alone = [write(rope, [prompt], max_tokens=20)[0] for prompt in prompts]
    ends = {0: 3, 1: 18, 2: 9}
    count = dict.fromkeys(ends, 0)

    def has_stopped(number):
        count[number] += 1
        return count[number] == ends[number]

    together = write(rope, prompts, max_tokens=20, has_stopped=has_stopped)
    assert together == [ids[: ends[number]] for number, ids in enumerate(alone)]


@pytest.mark.parametrize("max_tokens", [0, 1, 2, 20])
def test_max_tokens_counts_what_is_written_exactly(rope, max_tokens):
    assert [len(ids) for ids in write(rope, [prompt_of(10), prompt_of(1)], max_tokens=max_tokens)] == [max_tokens] * 2


def test_nothing_is_read_that_will_not_be_used(rope, monkeypatch):
    calls = []
    forward = rope.forward
    monkeypatch.setattr(rope, "forward", lambda *a, **k: calls.append(a[0].shape[1]) or forward(*a, **k))
    write(rope, [prompt_of(5)], max_tokens=4)
    assert calls == [5, 1, 1, 1]  # a forward pass that somebody watches is used
    calls.clear()
    write(rope, [prompt_of(5)], max_tokens=0)
    assert calls == []


def test_a_stop_id_is_told_and_is_the_last(rope):
    (whole,) = write(rope, [prompt_of(5)], max_tokens=20)
    stop_id = whole[6]
    (ended,) = write(rope, [prompt_of(5)], max_tokens=20, stop_ids={stop_id})
    assert ended == whole[: whole.index(stop_id) + 1]


def test_a_padding_id_in_the_prompt_is_a_token_like_any_other(rope):
    prompts = [[5, 0, 0, 7, 0], [0], prompt_of(9)]  # 0 is what rows are padded with
    assert write(rope, prompts) == [write(rope, [prompt])[0] for prompt in prompts]


def test_after_another_conversation_the_same_is_written(rope):
    first = write(rope, [prompt_of(5)])
    write(rope, [prompt_of(10, seed=1)], max_tokens=15)
    assert write(rope, [prompt_of(5)]) == first


def test_two_conversations_at_once_do_not_meet(rope):
    expected = write(rope, [prompt_of(5)])[0], write(rope, [prompt_of(7, seed=1)])[0]
    one = decode(rope, [prompt_of(5)], lambda _, logits: likeliest(logits), max_tokens=10)
    two = decode(rope, [prompt_of(7, seed=1)], lambda _, logits: likeliest(logits), max_tokens=10)
    both = [(a[1], b[1]) for a, b in zip(one, two, strict=True)]
    assert tuple(map(list, zip(*both, strict=True))) == expected


@pytest.mark.parametrize("context_length", [1, 2, 3, 5])
def test_tiny_contexts_slide_too(context_length):
    model = TransformerLM(ModelConfig(**{**SIZES, "context_length": context_length})).eval()
    prompt = prompt_of(context_length)
    assert write(model, [prompt], max_tokens=20) == [generate_naively(model, prompt, likeliest, 20)]


def test_what_is_visible_never_exceeds_the_context_and_never_falls_under_half_of_it():
    for context_length in range(1, 20):
        firsts = [visible_from(context_length, length) for length in range(1, 100)]
        assert firsts == sorted(firsts)
        for length, first in enumerate(firsts, 1):
            assert length - first <= context_length
            assert length - first >= min(length, kept_length(context_length))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_number_types_decode(rope, dtype):
    rope.to(dtype)
    assert len(write(rope, [prompt_of(5), prompt_of(10)], max_tokens=10)[0]) == 10


def test_a_model_in_training_writes_without_dropout_and_goes_on_training():
    torch.manual_seed(3)
    model = TransformerLM(ModelConfig(**SIZES, dropout=0.5)).train()
    before = torch.get_rng_state()
    first = write(model, [prompt_of(5)], max_tokens=10)
    assert write(model, [prompt_of(5)], max_tokens=10) == first
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in model.modules())


def test_a_consumer_may_train_between_two_ids():
    model = TransformerLM(ModelConfig(**SIZES, dropout=0.5)).train()
    for _ in decode(model, [prompt_of(5)], lambda _, logits: likeliest(logits), max_tokens=3):
        assert model.training
        assert torch.is_grad_enabled()


def test_logits_need_no_gradient(rope):
    assert not prefill(rope, [[1]], KVCache(rope.config, 1, 4)).requires_grad


def test_unused_ids_are_never_written():
    model = TransformerLM(ModelConfig(**{**SIZES, "num_unused_ids": 30})).eval()
    written = write(model, [prompt[:1] for prompt in [[3]] * 8], seeded(*range(8), temperature=50.0), max_tokens=30)
    assert max(map(max, written)) < 10


def test_the_prompts_are_left_as_they_were(rope):
    prompt = prompt_of(5)
    write(rope, [prompt])
    assert prompt == prompt_of(5)


def test_no_prompts_write_nothing(rope):
    assert list(decode(rope, [], lambda _, logits: 0, max_tokens=5)) == []


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ([], "none"),
        ([40], "ids from 0 to 39, but got 40"),
        ([-1], "but got -1"),
        ([0] * 13, "at most 12 tokens .*13 tokens"),
    ],
)
def test_a_prompt_that_cannot_be_read_is_refused_before_the_model_sees_it(rope, prompt, words):
    with pytest.raises(GenerationError, match=words):
        list(decode(rope, [[1], prompt], lambda _, logits: 0, max_tokens=5))


@pytest.mark.parametrize(("length", "dropped"), [(23, 0), (24, 0), (25, 1), (72, 48)])
def test_truncation_drops_the_beginning_and_says_how_much(length, dropped):
    assert fit_prompt(range(length), 24, truncate=True) == (list(range(dropped, length)), dropped)


@pytest.mark.parametrize("length", [25, 72])
def test_without_leave_to_truncate_both_numbers_are_named(length):
    with pytest.raises(GenerationError, match=rf"at most 24 tokens .* but got {length} tokens.*--truncate-prompt"):
        fit_prompt(range(length), 24, truncate=False)


@pytest.mark.parametrize("length", [23, 24])
def test_a_prompt_that_fits_is_left_alone(length):
    assert fit_prompt(range(length), 24, truncate=False) == (list(range(length)), 0)


def test_many_new_tokens_after_few_cached_ones_are_what_a_full_reading_gives(rope):
    token_ids = prompt_of(12)
    cache = new_cache(rope, 1, 12)
    prefill(rope, [token_ids[:3]], cache)
    for start, end in ((3, 4), (4, 7), (7, 12)):
        logits = rope(torch.tensor([token_ids[start:end]]), cache=cache)
        cache.advance(end - start)
        full = rope(torch.tensor([token_ids[:end]]))
        torch.testing.assert_close(logits[0], full[0, start:end], atol=1e-5, rtol=1e-5)


def test_rows_can_leave_a_cache(rope):
    prompts = [prompt_of(length, seed=length) for length in (3, 8, 5)]
    cache = new_cache(rope, 3, 12)
    prefill(rope, prompts, cache)
    keep_rows(cache, [2, 0])
    logits = decode_one(rope, [1, 2], cache)
    expected = rope(torch.tensor([[*prompts[2], 1]]))[0, -1]
    torch.testing.assert_close(logits[0], expected, atol=1e-5, rtol=1e-5)
