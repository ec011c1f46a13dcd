"""One program for loss and gradients: the same numbers as autograd's, and to autograd one operation."""

import pytest
import torch

from pellucid.train.one_program import OneProgram
from pellucid.train.variant import SummedLoss
from tests.train.small_run import small_model

pytestmark = pytest.mark.usefixtures("no_shape_checks")


def _batch():
    ids = torch.randint(24, (4, 9), generator=torch.Generator().manual_seed(0))
    targets = ids[:, 1:].clone()
    targets[0, :4] = -100
    return ids[:, :-1], targets


def _gradients(model, loss, parts, scale=0.25):
    """Every parameter's gradient after `backward` of each part's total."""
    model.zero_grad()
    for inputs, targets in parts:
        total, _ = loss(inputs, targets)
        (total * scale).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("tied", [False, True], ids=["head of its own", "tied head"])
def test_gradients_are_autograds(tied):
    model = small_model(tie_embeddings=tied)
    plain, one = SummedLoss(model), OneProgram(SummedLoss(model), backend="eager")
    expected, found = (_gradients(model, loss, [_batch()]) for loss in (plain, one))
    assert set(found) == set(expected)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], msg=name)
    for one_of, other in zip(plain(*_batch()), one(*_batch()), strict=True):
        torch.testing.assert_close(one_of, other)


def test_gradients_of_micro_batches_add_up():
    model = small_model()
    inputs, targets = _batch()
    halves = list(zip(inputs.split(2), targets.split(2), strict=True))
    expected = _gradients(model, SummedLoss(model), [(inputs, targets)])
    found = _gradients(model, OneProgram(SummedLoss(model), backend="eager"), halves)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], msg=name)


def test_hooks_on_parameters_see_the_gradient():
    model, seen = small_model(), []
    model.final_norm.weight.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad.clone()))
    expected = _gradients(model, OneProgram(SummedLoss(model), backend="eager"), [_batch()])
    torch.testing.assert_close(seen[0], expected["final_norm.weight"])


def test_it_computes_with_the_weights_as_they_are_now():
    model = small_model()
    loss = OneProgram(SummedLoss(model), backend="eager")
    before, _ = loss(*_batch())
    with torch.no_grad():
        model.lm_head.weight.mul_(3)
    after, _ = loss(*_batch())
    torch.testing.assert_close(after, SummedLoss(model)(*_batch())[0])
    assert after != before


def test_a_gradient_is_handed_on_once():
    model = small_model()
    total, _ = OneProgram(SummedLoss(model), backend="eager")(*_batch())
    total.backward(retain_graph=True)
    with pytest.raises(TypeError):  # the gradients have gone to the parameters, scaled in place
        total.backward()


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_compiled_it_repeats_itself_and_agrees_with_autograd(dropout):
    model = small_model(dropout=dropout).train()
    loss = OneProgram(SummedLoss(model))
    runs = []
    for _ in range(2):
        torch.manual_seed(1)
        runs.append(_gradients(model, loss, [_batch()]))
    for name in runs[0]:
        assert torch.equal(runs[0][name], runs[1][name]), name
    if not dropout:
        expected = _gradients(model, SummedLoss(model), [_batch()])
        for name in expected:
            torch.testing.assert_close(runs[0][name], expected[name], rtol=1e-4, atol=1e-5, msg=name)
