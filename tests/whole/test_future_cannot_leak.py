"""No score is high enough to be seen through the causal mask (field note M2)."""

from dataclasses import replace

import pytest
import torch

from tests.whole.models import ARCHITECTURES, random_ids, random_model

PAST = 7  # tokens that must not notice what comes after them

every_model = pytest.mark.parametrize("name", ARCHITECTURES)
both_paths = pytest.mark.parametrize("fused", [False, True], ids=["written out", "fused"])
two_types = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)


def _model_of_enormous_scores(name, dtype, fused):
    config = replace(ARCHITECTURES[name], attention_scale=1e6)
    return random_model(config, dtype).use_fused_attention(fused)


@every_model
def test_the_scores_of_these_tests_reach_a_million(name):
    model = _model_of_enormous_scores(name, torch.float32, False)
    attention, x = model.blocks[0].attention, torch.randn(1, 12, 48)
    query, key, _ = attention.project(x)
    assert (attention.scale * query @ attention.share_keys(key).mT).abs().max() > 1e6


@every_model
@both_paths
@two_types
def test_other_tokens_to_come_change_no_bit_of_the_logits_before_them(name, fused, dtype):
    model, ids = _model_of_enormous_scores(name, dtype, fused), random_ids(2, 12)
    others = ids.clone()
    others[:, PAST:] = (ids[:, PAST:] + 1 + random_ids(2, 5)) % 61
    before, after = model(ids), model(others)
    assert torch.equal(before[:, :PAST], after[:, :PAST])
    assert not torch.equal(before[:, PAST:], after[:, PAST:])


@every_model
@both_paths
@two_types
def test_no_gradient_reaches_the_embedding_of_a_token_to_come(name, fused, dtype):
    model, seen = _model_of_enormous_scores(name, dtype, fused), []

    def keep(module, args, output):
        output.retain_grad()
        seen.append(output)

    model.token_embedding.register_forward_hook(keep)
    logits = model(random_ids(2, 12))
    logits[:, PAST - 1].float().logsumexp(-1).sum().backward()
    assert seen[0].grad[:, PAST:].eq(0).all()
    assert seen[0].grad[:, PAST - 1].ne(0).any()
