"""Every number type gives finite, right logits and gradients, on both attention paths (M1, M8, M20)."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cosine_similarity

from pellucid.loss import cross_entropy
from tests.whole.models import ARCHITECTURES, random_ids, random_model

every_model = pytest.mark.parametrize("name", ARCHITECTURES)
both_paths = pytest.mark.parametrize("fused", [False, True], ids=["written out", "fused"])
# How far off (root mean square, as a share of the spread) three layers of rounding to 24, 11 and 8 bits may leave us:
# twice the most that was seen.
SHARE = {torch.float32: 1.3e-6, torch.float16: 3e-3, torch.bfloat16: 2.5e-2}
narrow_types = pytest.mark.parametrize("dtype", SHARE, ids=str)


def _logits_and_gradients(model, ids):
    logits = model(ids[:, :-1])
    loss = cross_entropy(logits, ids[:, 1:])
    return logits.detach().double(), [g.double() for g in torch.autograd.grad(loss, list(model.parameters()))]


def _share(found, right):
    return (found - right).square().mean().sqrt() / right.std()


@every_model
@both_paths
@narrow_types
def test_logits_and_gradients_are_those_of_float64_up_to_rounding(name, fused, dtype):
    model = random_model(ARCHITECTURES[name], dtype, std=0.1).use_fused_attention(fused)
    ids = random_ids(2, 33)
    logits, gradients = _logits_and_gradients(model, ids)
    expected, exact = _logits_and_gradients(model.double(), ids)
    assert _share(logits, expected) < SHARE[dtype]
    for (parameter, _), found, right in zip(model.named_parameters(), gradients, exact, strict=True):
        assert found.isfinite().all(), parameter
        if right.norm() > 1e-3 * max(gradient.norm() for gradient in exact):
            assert cosine_similarity(found.flatten(), right.flatten(), dim=0) > 1 - SHARE[dtype], parameter


@every_model
def test_both_paths_are_one_function_in_float64(name):
    model, ids = random_model(ARCHITECTURES[name], torch.float64), random_ids(2, 33)
    found = [_logits_and_gradients(model.use_fused_attention(fused), ids) for fused in (False, True)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)


@every_model
@both_paths
@pytest.mark.parametrize("autocast", [False, True], ids=["cast", "autocast"])
def test_float16_scores_past_its_range_give_right_logits(name, fused, autocast):
    """A model trained in bfloat16 may have such scores; the rest of it fits float16."""
    config = replace(ARCHITECTURES[name], attention_scale=2e4, num_layers=1)
    model = random_model(config, torch.float32 if autocast else torch.float16).use_fused_attention(fused)
    attention, ids = model.blocks[0].attention, random_ids(2, 17)
    query, key, _ = attention.project(torch.randn(1, 9, 48).to(model.lm_head.weight.dtype))
    assert (attention.scale * query.double() @ attention.share_keys(key).double().mT).abs().max() > 65504
    with torch.autocast("cpu", torch.float16, enabled=autocast):
        logits = model(ids)
    loss = cross_entropy(logits, ids)
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    expected = model.double()(ids)
    close = (logits.double() - expected).abs().amax(-1) < 0.05 * expected.std()
    assert close.float().mean() > 0.8  # a score's rounding may well choose another key where two are near


@pytest.mark.parametrize("name", [name for name, config in ARCHITECTURES.items() if config.positions == "rope"])
def test_positions_past_256_stay_apart_in_bfloat16(name):
    """M8: a table cast to bfloat16 has 256 and 257 in one place."""
    config = replace(ARCHITECTURES[name], context_length=700, num_layers=1)
    model = random_model(config, torch.bfloat16)
    query = torch.randn(1, config.d_head).expand(700, -1)
    turned = model.blocks[0].attention.rotary(query)
    assert torch.pdist(turned).min() > 1e-3


@every_model
@both_paths
def test_autocast_to_bfloat16_agrees_with_float32(name, fused):
    model, ids = random_model(ARCHITECTURES[name], std=0.1).use_fused_attention(fused), random_ids(2, 33)
    exact, right = _logits_and_gradients(model, ids)
    with torch.autocast("cpu", torch.bfloat16):
        logits, gradients = _logits_and_gradients(model, ids)
    assert _share(logits, exact) < SHARE[torch.bfloat16]
    whole, expected = (torch.cat([gradient.flatten() for gradient in each]) for each in (gradients, right))
    assert cosine_similarity(whole, expected, dim=0) > 0.99
