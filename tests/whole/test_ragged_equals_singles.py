"""Prompts of different lengths in one batch give what each gives alone (field notes M11, M12, M14)."""

import pytest
import torch

from pellucid.nn import KVCache
from tests.whole.models import ARCHITECTURES, random_ids, random_model

EXACT = 1e-9
LENGTHS = [1, 5, 17, 9]
END_OF_TEXT = 60
every_model = pytest.mark.parametrize("name", ARCHITECTURES)
both_paths = pytest.mark.parametrize("fused", [False, True], ids=["written out", "fused"])


def _padded(prompts, pad):
    width = max(len(prompt) for prompt in prompts)
    batch = torch.full((len(prompts), width), pad)
    for row, prompt in zip(batch, prompts, strict=True):
        row[: len(prompt)] = prompt
    return batch


@torch.no_grad()
@every_model
@both_paths
def test_logits_of_real_tokens_are_those_of_each_prompt_alone(name, fused):
    model = random_model(ARCHITECTURES[name], torch.float64).use_fused_attention(fused)
    prompts = [random_ids(length) for length in LENGTHS]
    logits = model(_padded(prompts, 0), lengths=LENGTHS)
    for row, prompt in zip(logits, prompts, strict=True):
        torch.testing.assert_close(row[: len(prompt)], model(prompt[None])[0], rtol=0, atol=EXACT)
    assert logits.isfinite().all()


@torch.no_grad()
@every_model
def test_decoding_goes_on_behind_each_prompts_own_end(name):
    model = random_model(ARCHITECTURES[name], torch.float64)
    prompts, later = [random_ids(length) for length in LENGTHS], random_ids(4, 6)
    cache = KVCache(model.config, 4, 30, dtype=torch.float64)
    found = [model(_padded(prompts, 3), lengths=LENGTHS, cache=cache, last_only=True)]
    cache.advance(LENGTHS)
    for chunk in later.split([1, 2, 1, 2], dim=1):
        found.append(model(chunk, cache=cache))
        cache.advance(chunk.shape[1])
    together = torch.cat(found, dim=1)
    for row, prompt, more in zip(together, prompts, later, strict=True):
        alone = model(torch.cat([prompt, more])[None])[0, len(prompt) - 1 :]
        torch.testing.assert_close(row, alone, rtol=0, atol=EXACT)


@torch.no_grad()
def test_rows_may_grow_by_different_numbers_of_tokens():
    model = random_model(ARCHITECTURES["default"], torch.float64)
    turns = [[random_ids(n) for n in lengths] for lengths in ([4, 1, 3], [2, 5, 0], [1, 1, 6])]
    cache = KVCache(model.config, 3, 20, dtype=torch.float64)
    for turn in turns:
        lengths = [len(tokens) for tokens in turn]
        logits = model(_padded(turn, 7), lengths=lengths, cache=cache)
        cache.advance(lengths)
    for row in range(3):
        alone = model(torch.cat([turn[row] for turn in turns])[None])[0]
        new = len(turns[-1][row])
        torch.testing.assert_close(logits[row, :new], alone[-new:], rtol=0, atol=EXACT)


@torch.no_grad()
@pytest.mark.parametrize("name", ["default", "gpt2", "no positions"])
def test_greedy_text_in_float32_is_that_of_each_prompt_alone(name, no_shape_checks):
    model = random_model(ARCHITECTURES[name])
    prompts = [random_ids(length) for length in (1, 5, 17)]

    def greedy(batch, lengths):
        cache, new, text = KVCache(model.config, len(batch), 60), batch, []
        for step in range(30):
            logits = model(new, lengths=lengths if step == 0 else None, cache=cache, last_only=True)
            cache.advance(lengths if step == 0 else 1)
            new = logits.argmax(-1)
            text.append(new)
        return torch.cat(text, dim=1)

    together = greedy(_padded(prompts, 0), [1, 5, 17])
    alone = [greedy(prompt[None], [len(prompt)])[0] for prompt in prompts]
    assert torch.equal(together, torch.stack(alone))


@torch.no_grad()
@pytest.mark.parametrize("name", ["default", "gpt2"])
def test_what_stands_in_the_padding_does_not_matter(name):
    model, prompts = random_model(ARCHITECTURES[name]), [random_ids(3), random_ids(8)]
    first, second = (model(_padded(prompts, pad), lengths=[3, 8]) for pad in (0, 59))
    assert torch.equal(first[0, :3], second[0, :3])
    assert torch.equal(first[1], second[1])


@torch.no_grad()
def test_a_genuine_end_of_text_is_not_taken_for_padding():
    model = random_model(ARCHITECTURES["default"], torch.float64)
    prompt = random_ids(9)
    prompt[4] = prompt[8] = END_OF_TEXT
    logits = model(_padded([prompt, random_ids(15)], END_OF_TEXT), lengths=[9, 15])
    torch.testing.assert_close(logits[0, :9], model(prompt[None])[0], rtol=0, atol=EXACT)


@every_model
@both_paths
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_row_of_nothing_but_padding_is_finite_and_leaves_the_others_alone(name, fused, dtype):
    model = random_model(ARCHITECTURES[name], dtype, std=0.1).use_fused_attention(fused)
    ids = random_ids(3, 9)
    logits = model(ids, lengths=[9, 0, 4])
    logits.float().square().mean().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    real = model(ids, lengths=[9, 9, 4])
    assert torch.equal(logits[[0, 2]], real[[0, 2]])
