import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import DataError
from pellucid.loss import cross_entropy, summed_cross_entropy


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_cross_entropy_is_torchs(dtype):
    logits = (3 * torch.randn(2, 5, 11)).to(dtype)
    targets = torch.randint(11, (2, 5))
    expected = F.cross_entropy(logits.to(torch.promote_types(dtype, torch.float32)).flatten(0, 1), targets.flatten())
    torch.testing.assert_close(cross_entropy(logits, targets), expected)


def test_its_gradient_is_torchs():
    logits = torch.randn(6, 11, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([3, -100, 0, 10, -100, 3])
    (ours,) = torch.autograd.grad(cross_entropy(logits, targets), logits)
    (theirs,) = torch.autograd.grad(F.cross_entropy(logits, targets), logits)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_it_is_computed_in_float32_or_wider(dtype):
    loss = cross_entropy(torch.randn(3, 7).to(dtype), torch.tensor([1, 2, 3]))
    assert loss.dtype == torch.promote_types(dtype, torch.float32)


@given(shift=st.floats(-1e4, 1e4))
def test_adding_a_constant_to_the_logits_changes_nothing(shift):
    logits = torch.randn(4, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    targets = torch.tensor([0, 8, 4, 4])
    torch.testing.assert_close(cross_entropy(logits + shift, targets), cross_entropy(logits, targets))


@pytest.mark.parametrize("size", [1e4, 1e30])
def test_enormous_logits_stay_finite(size):
    logits = torch.tensor([[size, 0.0, -size]], requires_grad=True)
    loss = cross_entropy(logits, torch.tensor([0]))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.isfinite().all()


def test_unused_ids_of_minus_infinity_change_neither_loss_nor_gradient():
    real, targets = torch.randn(5, 7), torch.randint(7, (5,))
    padded = torch.cat([real, torch.full((5, 3), -torch.inf)], dim=-1).requires_grad_()
    loss = cross_entropy(padded, targets)
    loss.backward()
    torch.testing.assert_close(loss, cross_entropy(real, targets))
    assert padded.grad[:, 7:].eq(0).all()


def test_micro_batches_of_unequal_counts_add_up_to_the_whole_batch():
    weight = torch.randn(16, 13, dtype=torch.float64, requires_grad=True)
    inputs, targets = torch.randn(4, 50, 16, dtype=torch.float64), torch.full((4, 50), -100)
    for row, count in enumerate([50, 3, 0, 11]):  # field note T6's cut, with a micro-batch that scores nothing
        targets[row, :count] = torch.randint(13, (count,))

    whole = cross_entropy(inputs @ weight, targets)
    (expected,) = torch.autograd.grad(whole, weight)

    total_count = (targets != -100).sum()
    printed = torch.zeros((), dtype=torch.float64)
    for row in range(4):
        total, _ = summed_cross_entropy(inputs[row] @ weight, targets[row])
        (total / total_count).backward()
        printed += total.detach() / total_count
    torch.testing.assert_close(weight.grad, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(printed, whole.detach())


def test_a_batch_with_nothing_scored_is_zero_with_zero_gradients():
    logits = torch.randn(3, 5, requires_grad=True)
    loss = cross_entropy(logits, torch.full((3,), -100))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.eq(0).all()


def test_an_ignored_place_may_have_a_target_id_that_is_impossible():
    logits = torch.tensor([[-torch.inf, 0.0, 1.0], [0.0, 1.0, 2.0]], requires_grad=True)
    loss = cross_entropy(logits, torch.tensor([-100, 2]))
    loss.backward()
    assert loss.isfinite()
    assert logits.grad.isfinite().all()


def test_another_ignore_id_may_be_chosen():
    logits = torch.randn(3, 5)
    torch.testing.assert_close(
        cross_entropy(logits, torch.tensor([1, 0, 2]), ignore_id=0),
        cross_entropy(logits, torch.tensor([1, -100, 2])),
    )


def test_an_empty_batch_scores_nothing():
    total, count = summed_cross_entropy(torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64))
    assert (total.item(), count.item()) == (0, 0)


@pytest.mark.parametrize("foreign", [5, -1, 70000])
def test_a_target_outside_the_vocabulary_is_named_with_both_numbers(foreign):
    with pytest.raises(DataError, match=f"0 to 4.*{foreign}"):
        cross_entropy(torch.zeros(2, 5), torch.tensor([0, foreign]))


def test_it_differentiates_under_deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        logits = torch.randn(4, 5, requires_grad=True)
        cross_entropy(logits, torch.tensor([0, 1, 2, 3])).backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert logits.grad.isfinite().all()
