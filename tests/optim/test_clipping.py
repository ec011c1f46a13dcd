import pytest
import torch

from pellucid.optim.clipping import clip_gradients, global_norm


def weights_with_gradients(dtype=torch.float32):
    weights = [torch.nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in [(3, 4), (5,), (), (2, 2)]]
    for weight in weights[:-1]:
        weight.grad = torch.randn(weight.shape).to(dtype)
    return weights


@pytest.mark.parametrize("max_norm", [0.01, 1.0, 100.0])
def test_clipping_is_torchs(max_norm):
    ours = weights_with_gradients()
    theirs = [torch.nn.Parameter(weight.detach().clone()) for weight in ours]
    for weight, twin in zip(ours, theirs, strict=True):
        twin.grad = None if weight.grad is None else weight.grad.clone()
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
    torch.testing.assert_close(clip_gradients(ours, max_norm), expected)
    for weight, twin in zip(ours, theirs, strict=True):
        torch.testing.assert_close(weight.grad, twin.grad)


def test_the_norm_is_of_all_gradients_together():
    weights = weights_with_gradients()
    together = torch.cat([weight.grad.flatten() for weight in weights if weight.grad is not None])
    torch.testing.assert_close(global_norm(weights), together.norm())


def test_a_small_gradient_is_left_bit_for_bit():
    weights = weights_with_gradients()
    before = [weight.grad.clone() for weight in weights[:-1]]
    clip_gradients(weights, 1e6)
    assert all(weight.grad.equal(gradient) for weight, gradient in zip(weights, before, strict=False))


def test_a_bound_of_zero_means_none():
    weights = weights_with_gradients()
    norm = clip_gradients(weights, 0.0)
    torch.testing.assert_close(global_norm(weights), norm)


@pytest.mark.parametrize("fault", [torch.inf, -torch.inf, torch.nan])
def test_a_norm_that_is_not_finite_is_told_and_scales_nothing(fault):
    weights = weights_with_gradients()
    weights[0].grad[0, 0] = fault
    others = weights[1].grad.clone()
    assert not clip_gradients(weights, 1.0).isfinite()
    assert weights[1].grad.equal(others)


def test_half_precision_gradients_do_not_overflow_the_norm():
    weight = torch.nn.Parameter(torch.zeros(4, dtype=torch.float16))
    weight.grad = torch.full((4,), 40000.0, dtype=torch.float16)
    assert clip_gradients([weight], 1.0).item() == 80000  # more than float16 can hold
    assert weight.grad.float().norm().item() == pytest.approx(1, abs=2e-3)


def test_without_gradients_the_norm_is_zero():
    assert clip_gradients([torch.nn.Parameter(torch.zeros(3))], 1.0).item() == 0
    assert clip_gradients(iter([]), 1.0).item() == 0
