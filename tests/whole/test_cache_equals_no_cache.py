"""What a cached decoder computes is what the whole forward computes (field notes M3, M4, M5)."""

from dataclasses import replace

import pytest
import torch

from pellucid.model_config import ModelConfig
from pellucid.nn import KVCache
from tests.whole.models import ARCHITECTURES, random_ids, random_model

EXACT = 1e-9  # float64: an error of the algorithm would be 1e-2 or more
every_model = pytest.mark.parametrize("name", ARCHITECTURES)
both_paths = pytest.mark.parametrize("fused", [False, True], ids=["written out", "fused"])


def _fed_in_chunks(model, ids, chunks, cache):
    logits = []
    for chunk in ids.split(chunks, dim=1):
        logits.append(model(chunk, cache=cache))
        cache.advance(chunk.shape[1])
    return torch.cat(logits, dim=1)


@torch.no_grad()
@every_model
@both_paths
@pytest.mark.parametrize("chunks", [[7, 1, 3, 5], [1] * 16, [16], [1, 15]], ids=str)
def test_logits_do_not_depend_on_how_tokens_are_fed(name, fused, chunks):
    model, ids = random_model(ARCHITECTURES[name], torch.float64).use_fused_attention(fused), random_ids(2, 16)
    cache = KVCache(model.config, 2, 16, dtype=torch.float64)
    torch.testing.assert_close(_fed_in_chunks(model, ids, chunks, cache), model(ids), rtol=0, atol=EXACT)


@torch.no_grad()
@every_model
def test_in_float32_the_difference_is_rounding(name):
    model, ids = random_model(ARCHITECTURES[name], std=0.1), random_ids(2, 16)
    logits = _fed_in_chunks(model, ids, [7, 1, 3, 5], KVCache(model.config, 2, 16))
    torch.testing.assert_close(logits, model(ids), rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(8, 2), (6, 3), (4, 1), (8, 8)])
def test_every_geometry_of_heads_can_be_cached(num_heads, num_kv_heads):
    config = ModelConfig(vocab_size=61, d_model=96, num_heads=num_heads, num_kv_heads=num_kv_heads, d_head=32)
    model, ids = random_model(config, torch.float64), random_ids(1, 16)
    cache = KVCache(config, 1, 16, dtype=torch.float64)
    torch.testing.assert_close(_fed_in_chunks(model, ids, [7, 1, 3, 5], cache), model(ids), rtol=0, atol=EXACT)


@torch.no_grad()
@pytest.mark.parametrize("name", ["default", "gpt2", "gemma3"])
def test_a_second_conversation_remembers_nothing_of_the_first(name):
    model = random_model(ARCHITECTURES[name], torch.float64)
    cache = KVCache(model.config, 2, 16, dtype=torch.float64)
    _fed_in_chunks(model, random_ids(2, 16), [16], cache)
    cache.reset()
    ids = random_ids(2, 12)
    torch.testing.assert_close(_fed_in_chunks(model, ids, [5, 7], cache), model(ids), rtol=0, atol=EXACT)


@torch.no_grad()
def test_two_conversations_side_by_side_do_not_mix():
    model, first, second = random_model(ARCHITECTURES["default"], torch.float64), random_ids(1, 9), random_ids(1, 9)
    caches = [KVCache(model.config, 1, 9, dtype=torch.float64) for _ in range(2)]
    for turn in range(9):
        for ids, cache in ((first, caches[0]), (second, caches[1])):
            logits = model(ids[:, turn : turn + 1], cache=cache)
            cache.advance(1)
            torch.testing.assert_close(logits[:, 0], model(ids)[:, turn], rtol=0, atol=EXACT)


@torch.no_grad()
def test_a_forward_without_advancing_may_be_repeated():
    model, ids = random_model(ARCHITECTURES["default"], torch.float64), random_ids(1, 4)
    cache = KVCache(model.config, 1, 8, dtype=torch.float64)
    assert torch.equal(model(ids, cache=cache), model(ids, cache=cache))


@torch.no_grad()
def test_a_cache_of_another_type_is_converted():
    model, ids = random_model(ARCHITECTURES["default"], torch.bfloat16), random_ids(2, 9)
    narrow, wide = (KVCache(model.config, 2, 9, dtype=dtype) for dtype in (torch.bfloat16, torch.float32))
    for fused in (False, True):
        model.use_fused_attention(fused)
        narrow.reset()
        wide.reset()
        chunks = [4, 1, 4]
        assert torch.equal(_fed_in_chunks(model, ids, chunks, narrow), _fed_in_chunks(model, ids, chunks, wide))


@torch.no_grad()
@every_model
@pytest.mark.parametrize("num_new", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_greedy_text_is_the_same_with_and_without_a_cache(name, num_new, no_shape_checks):
    model, ids = random_model(ARCHITECTURES[name]), random_ids(2, 5)
    cache, cached, whole = KVCache(model.config, 2, 5 + num_new), ids, ids
    new = ids
    for _ in range(num_new):
        logits = model(new, cache=cache)
        cache.advance(new.shape[1])
        new = logits[:, -1:].argmax(-1)
        cached = torch.cat([cached, new], dim=1)
        whole = torch.cat([whole, model(whole, last_only=True).argmax(-1)], dim=1)
    assert torch.equal(cached, whole)


@torch.no_grad()
def test_through_a_window_only_the_last_keys_count():
    config = replace(ARCHITECTURES["window"], num_layers=1)
    model, ids = random_model(config, torch.float64), random_ids(1, 20)
    cache = KVCache(config, 1, 20, dtype=torch.float64)
    slid = _fed_in_chunks(model, ids, [1] * 20, cache)[:, -1]
    torch.testing.assert_close(model(ids[:, -6:])[:, -1], slid, rtol=0, atol=1e-5)  # rope's tables are float32
    assert not torch.allclose(model(ids[:, -5:])[:, -1], slid, atol=1e-3)
