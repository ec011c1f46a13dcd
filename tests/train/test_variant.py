import itertools

import pytest
import torch

from pellucid.loss import cross_entropy
from pellucid.train.variant import Variant, loss_function
from tests.train.small_run import small_model

VARIANTS = [
    Variant(precision=precision, attention=attention, compiled=compiled)
    for precision, attention, compiled in itertools.product(
        ("float32", "bfloat16"), ("written-out", "fused"), (False, True)
    )
]


@pytest.fixture
def batch():
    ids = torch.randint(24, (3, 9), generator=torch.Generator().manual_seed(0))
    targets = ids[:, 1:].clone()
    targets[0, :4] = -100
    return ids[:, :-1], targets


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_run_json_says_is_read_back(variant):
    assert Variant.parse(str(variant)) == variant


@pytest.mark.parametrize("attention", ["written-out", "fused"])
def test_the_loss_is_summed_over_the_scored_tokens(batch, attention):
    model = small_model()
    total, count = loss_function(model, Variant(attention=attention))(*batch)
    assert int(count) == 20
    assert float(total.detach()) / 20 == pytest.approx(
        float(cross_entropy(model(batch[0]), batch[1]).detach()), rel=1e-6
    )


def test_bfloat16_multiplies_narrowly_and_keeps_the_loss_and_the_weights_wide(batch):
    model = small_model()
    total, _ = loss_function(model, Variant(precision="bfloat16"))(*batch)
    exact, _ = loss_function(model, Variant())(*batch)
    assert total.dtype == torch.float32
    assert total != exact
    assert float(total.detach()) == pytest.approx(float(exact.detach()), rel=1e-2)
    total.backward()
    assert {parameter.grad.dtype for parameter in model.parameters()} == {torch.float32}


def test_the_attention_path_is_the_models():
    model = small_model()
    loss_function(model, Variant(attention="fused"))
    assert all(block.attention.fused for block in model.blocks)
    loss_function(model, Variant())
    assert not any(block.attention.fused for block in model.blocks)


def test_padding_ids_take_no_part_in_the_loss_and_get_no_gradient():
    model = small_model(vocab_size=32, num_unused_ids=8)
    ids = torch.randint(24, (2, 9))
    total, _ = loss_function(model, Variant())(ids[:, :-1], ids[:, 1:])
    with torch.no_grad():
        expected = torch.nn.functional.cross_entropy(
            model(ids[:, :-1])[..., :24].flatten(0, 1), ids[:, 1:].flatten(), reduction="sum"
        )
    assert float(total.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    total.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model.lm_head.weight.grad[24:].eq(0).all()
