import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from pellucid import loss
from pellucid.errors import DataError
from pellucid.loss import chunked_cross_entropy, cross_entropy, summed_cross_entropy
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM


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


# --- in chunks


@pytest.fixture
def _small_chunks(monkeypatch):
    monkeypatch.setattr(loss, "CHUNK_BYTES", 7 * 4 * 29)  # seven tokens at most


def head(**choices):
    """A model whose head is large, and what the head reads."""
    model = TransformerLM(
        ModelConfig(vocab_size=29, d_model=32, num_layers=1, num_heads=2, d_ff=32, **choices)
    ).double()
    with torch.no_grad():
        for parameter in model.lm_head.parameters():
            parameter.normal_(0, 0.7)
    hidden = torch.randn(3, 8, 32, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(29 - choices.get("num_unused_ids", 0), (3, 8))
    targets[1, 2:6] = -100
    return model, hidden, targets


def in_chunks(model, hidden, targets):
    config = model.config
    return chunked_cross_entropy(
        hidden,
        model.lm_head.weight,
        targets,
        bias=model.lm_head.bias,
        soft_cap=config.logit_soft_cap,
        num_unused_ids=config.num_unused_ids,
    )


def at_once(model, hidden, targets):
    return summed_cross_entropy(model.logits(hidden), targets)


CHOICES = [{}, {"head_bias": True}, {"logit_soft_cap": 3.0}, {"num_unused_ids": 4}]
CHOICES += [{"head_bias": True, "logit_soft_cap": 2.0, "num_unused_ids": 4}]


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("choices", CHOICES)
def test_in_chunks_loss_and_gradients_are_those_of_the_whole(choices):
    model, hidden, targets = head(**choices)
    leaves = [hidden, *model.lm_head.parameters()]
    found, whole = in_chunks(model, hidden, targets), at_once(model, hidden, targets)
    assert found[1] == whole[1] == 20
    torch.testing.assert_close(found[0], whole[0])
    ours, theirs = (torch.autograd.grad(total / 7, leaves) for total in (found[0], whole[0]))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("choices", CHOICES)
def test_in_chunks_torch_func_differentiates_it_too(choices):
    model, hidden, targets = head(**choices)
    ours, theirs = (
        torch.func.grad(lambda x, how=how: how(model, x, targets)[0])(hidden.detach()) for how in (in_chunks, at_once)
    )
    torch.testing.assert_close(ours, theirs)


@pytest.mark.usefixtures("_small_chunks", "no_shape_checks")
def test_in_chunks_it_is_traced_as_one_graph():
    model, hidden, targets = head(logit_soft_cap=3.0)
    traced = torch.compile(in_chunks, backend="eager", fullgraph=True, dynamic=False)
    (ours,) = torch.autograd.grad(traced(model, hidden, targets)[0], hidden)
    (theirs,) = torch.autograd.grad(at_once(model, hidden, targets)[0], hidden)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.usefixtures("_small_chunks")
def test_in_chunks_never_more_than_a_chunk_of_logits_is_there(monkeypatch):
    model, hidden, targets = head()
    seen = []
    whole = loss.summed_cross_entropy
    monkeypatch.setattr(
        loss,
        "summed_cross_entropy",
        lambda logits, *rest, **how: (seen.append(len(logits)), whole(logits, *rest, **how))[1],
    )
    in_chunks(model, hidden, targets)
    assert seen == [6, 6, 6, 6]


@pytest.mark.usefixtures("_small_chunks")
def test_in_chunks_products_may_be_taken_in_bfloat16():
    model, hidden, targets = head()
    model, hidden = model.float(), hidden.detach().float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        found, whole = in_chunks(model, hidden, targets)[0], at_once(model, hidden, targets)[0]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, whole, rtol=1e-3, atol=0)  # both round the same products; sums differ in order
    ours, theirs = (torch.autograd.grad(total, model.lm_head.weight)[0] for total in (found, whole))
    assert ours.dtype == torch.float32
    assert (ours - theirs).norm() < 0.02 * theirs.norm()  # bfloat16 keeps 8 bits


@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_in_chunks_nothing_costs_nothing(shape):
    model, _, _ = head()
    hidden = torch.randn(*shape, 32, dtype=torch.float64, requires_grad=True)
    total, count = in_chunks(model, hidden, torch.zeros(shape, dtype=torch.long))
    total.backward()
    assert (total.item(), count.item()) == (0, 0)
    assert not model.lm_head.weight.grad.any()


def test_in_chunks_ids_outside_the_vocabulary_are_refused():
    model, hidden, targets = head()
    with pytest.raises(DataError, match="0 to 28"):
        in_chunks(model, hidden, torch.full_like(targets, 29))
