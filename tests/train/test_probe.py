import re

import pytest
import torch

from pellucid.lora import adapted_maps, add_factors
from pellucid.train.probe import difference, loss_and_gradients, probing, reference
from pellucid.train.variant import Variant, loss_function
from tests.train.small_run import small_model


@pytest.fixture
def batch():
    ids = torch.randint(24, (3, 17), generator=torch.Generator().manual_seed(0))
    return ids[:, :-1], ids[:, 1:]


@pytest.fixture
def model():
    return small_model()


def spoil(gradients, name, change):
    return {**gradients, name: change(gradients[name].clone())}


def with_a_nan(gradient):
    gradient.view(-1)[0] = torch.nan
    return gradient


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("attention", ["written-out", "fused"])
def test_every_way_to_compute_the_step_that_is_right_agrees(model, batch, precision, attention):
    with probing(model):
        expected = reference(model, batch)
        loss = loss_function(model, Variant(precision=precision, attention=attention))
        assert difference(loss_and_gradients(model, loss, batch), expected, precision) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_a_nan, "is not finite"),
        (lambda gradient: gradient / 0, "is not finite"),
        (lambda gradient: gradient * 1.01, r"is off by 1\.0%"),
        (lambda gradient: -gradient, "is off by 200"),
        (torch.zeros_like, "is off by 100"),
        (lambda gradient: gradient.flip(0), "is off by"),
    ],
)
def test_a_wrong_gradient_is_named(model, batch, change, said):
    loss, gradients = reference(model, batch)
    name = "blocks.0.attention.query_key_value.weight"
    wrong = difference((loss, spoil(gradients, name, change)), (loss, gradients), "float32")
    assert wrong.startswith(f"the gradient of {name} ")
    assert re.search(said, wrong)


def test_a_missing_gradient_is_named(model, batch):
    loss, gradients = reference(model, batch)
    fewer = {name: gradient for name, gradient in gradients.items() if name != "lm_head.weight"}
    assert difference((loss, fewer), (loss, gradients), "float32") == "lm_head.weight gets no gradient"


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 2.0])
def test_a_wrong_loss_is_told_beside_the_right_one(wrong):
    assert difference((wrong, {}), (1.0, {}), "bfloat16") == f"its loss is {wrong:.4f}, and should be 1.0000"


def test_a_reference_that_is_not_finite_agrees_with_nothing():
    nan = float("nan")
    assert difference((nan, {}), (nan, {}), "float32")
    gradients = {"w": torch.tensor([nan])}
    assert difference((1.0, gradients), (1.0, gradients), "float32")


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_afterwards_weights_mode_and_gradients_are_as_before(batch, dropout):
    model = small_model(dropout=dropout)
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with probing(model):
        assert any(not torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
        reference(model, batch)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_no_gradient_is_zero_while_probing_so_that_none_agrees_by_being_nothing(model, batch):
    with torch.no_grad():
        for block in model.blocks:  # what a fresh run may begin with
            block.attention.output.weight.zero_()
            block.feed_forward.down.weight.zero_()
    with probing(model):
        _, gradients = reference(model, batch)
    assert all(gradient.norm() > 0 for gradient in gradients.values())


def test_dropout_does_not_hide_a_difference(batch):
    model = small_model(dropout=0.5)
    with probing(model):
        assert difference(reference(model, batch), reference(model, batch), "float32") == ""


@pytest.mark.parametrize("alpha", [1.0, 64.0])
def test_factors_are_probed_beside_a_model_that_still_knows_what_it_knew(batch, alpha):
    model = add_factors(small_model(), rank=4, alpha=alpha)
    maps = [(module.weight, module) for _, module in adapted_maps(model)]
    with probing(model, has_learned=True):
        for weight, module in maps:
            factors = dict(module.factors.named_parameters())
            moved = (module.merged_weight(weight, factors) - weight).std() * weight.shape[1] ** 0.5
            assert 0.1 < moved < 1  # in units of a fresh weight
