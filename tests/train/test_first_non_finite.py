import math

import pytest
import torch

from pellucid.train.first_non_finite import FirstNonFinite, find_first_non_finite, told
from pellucid.train.variant import Variant, loss_function
from tests.train.small_run import small_model


def batch(rows=2, vocab_size=24):
    ids = torch.randint(0, vocab_size, (rows, 9), generator=torch.Generator().manual_seed(1))
    return ids[:, :-1], ids[:, 1:]


def find(model, **rest):
    return find_first_non_finite(model, loss_function(model, Variant()), [batch()], **rest)


def spoil(model, address, number):
    weight = model.get_submodule(address).weight
    with torch.no_grad():
        weight.view(-1)[0] = number


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(
    "address", ["blocks.0.attention.query_key_value", "blocks.1.feed_forward.down", "final_norm", "lm_head"]
)
def test_a_weight_that_is_not_finite_is_named_by_its_module(address, number):
    model = small_model(num_layers=2)
    spoil(model, address, number)
    spoil(model, "lm_head", number)
    assert find(model) == FirstNonFinite(module=address, what="output", weights_finite=False)


def test_a_product_that_overflows_has_finite_inputs_and_weights():
    model = small_model()
    with torch.no_grad():
        model.blocks[0].feed_forward.up.weight.fill_(3e38)
    found = find(model)
    assert found == FirstNonFinite(module="blocks.0.feed_forward.up", what="output")
    assert told(found).endswith("blocks.0.feed_forward.up (its input and its weights were finite)")


def test_what_arises_between_two_modules_is_said_to_arise_within_what_holds_them():
    model = small_model(num_layers=2)
    attention = model.blocks[1].attention
    model.use_fused_attention(False)
    loss = loss_function(model, Variant())
    attention.written_out = lambda query, *rest, **how: query * math.inf
    found = find_first_non_finite(model, loss, [batch()])
    assert (found.module, found.input_finite, found.weights_finite) == ("blocks.1.attention.output", False, True)
    assert "arose within blocks.1.attention)" in told(found)


class _Spoiled(torch.autograd.Function):
    """Finite forward, not finite backward."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * math.inf


def test_a_gradient_that_is_not_finite_is_found_where_it_comes_back_first():
    model = small_model(num_layers=2)
    loss = loss_function(model, Variant())
    handle = model.blocks[1].feed_forward.register_forward_hook(lambda module, given, output: _Spoiled.apply(output))
    found = find_first_non_finite(model, loss, [batch()])
    handle.remove()
    assert (found.module, found.what) == ("blocks.1.feed_forward.down", "gradient")
    assert "every output and the loss were finite" in told(found)


def test_a_gradient_of_weights_alone_is_found_too():
    model = small_model()
    loss = loss_function(model, Variant())
    weight = model.blocks[0].feed_forward.gate.weight
    handle = weight.register_hook(lambda gradient: gradient * math.nan)
    found = find_first_non_finite(model, loss, [batch()])
    handle.remove()
    assert found == FirstNonFinite(module="blocks.0.feed_forward.gate", what="weight gradient")


def test_a_loss_that_is_not_finite_after_finite_outputs_is_named_itself():
    model = small_model()
    summed = loss_function(model, Variant())

    def loss(*some):
        total, count = summed(*some)
        return total * math.inf, count

    found = find_first_non_finite(model, loss, [batch()])
    assert found.module == "loss"
    assert told(found) == "the first that was not finite: the loss (every module's output was finite)"


def test_where_everything_is_finite_nothing_is_found_and_that_is_said():
    assert find(small_model()) is None
    assert "every gradient was finite" in told(None)


def test_ids_that_no_token_has_score_minus_infinity_and_that_is_no_fault():
    model = small_model(vocab_size=32, num_unused_ids=8)
    assert find(model) is None


def test_later_micro_batches_are_looked_at_too():
    model = small_model()
    with torch.no_grad():
        model.token_embedding.weight[23] = math.nan
    loss = loss_function(model, Variant())
    good, bad = batch(vocab_size=20), (torch.full((1, 8), 23), torch.zeros(1, 8, dtype=torch.long))
    assert find_first_non_finite(model, loss, [good]) is None
    assert find_first_non_finite(model, loss, [good, bad]).module == "token_embedding"


def test_looking_changes_nothing():
    model = small_model(dropout=0.3)
    model.train()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = [parameter.grad for parameter in model.parameters()]
    stream = torch.get_rng_state()
    assert find(model, seed=7) is None
    assert torch.equal(torch.get_rng_state(), stream)
    assert model.training
    assert all(parameter.grad is kept for parameter, kept in zip(model.parameters(), before, strict=True))
    assert all(torch.equal(kept, torch.ones_like(kept)) for kept in before)
    assert not any(module._forward_hooks for module in model.modules())


def test_with_the_steps_seed_the_same_is_dropped():
    model = small_model(dropout=0.5)
    model.train()
    seen = []
    handle = model.lm_head.register_forward_hook(lambda module, given, output: seen.append(output.detach()))
    for seed in (1, 1, 2):
        find(model, seed=seed)
    handle.remove()
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
