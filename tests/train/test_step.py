import math
import weakref
from typing import ClassVar

import pytest
import torch

from pellucid.data import IGNORED, Batches
from pellucid.optim import build_optimizer
from pellucid.parallel import Ranks
from pellucid.train.step import TrainStep
from pellucid.train.variant import Variant, loss_function
from pellucid.training_config import OptimizerConfig
from tests.train.small_run import small_model


class Rows(Batches):
    """Batches of eight rows of eight random ids."""

    def __init__(self):
        self.batch_size, self.context_length = 8, 8

    def at(self, step, rows=slice(None)):
        ids = torch.randint(24, (8, 9), generator=torch.Generator().manual_seed(step))
        return ids[rows, :-1], ids[rows, 1:]


def make_step(model=None, loss=None, **settings):
    model = model or small_model()
    settings = {"max_gradient_norm": 1.0, **settings}
    loss = loss or loss_function(model, Variant())
    return TrainStep(model, loss, build_optimizer(model, OptimizerConfig()), Rows(), **settings)


def gradients(model):
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def batch_with_scored(*counts):
    """Rows of which so many targets are scored."""
    inputs, targets = torch.randint(24, (2, 4 * len(counts), 16), generator=torch.Generator().manual_seed(0))
    for group, count in enumerate(counts):
        rows = targets[4 * group : 4 * group + 4].view(-1)
        rows[count:] = IGNORED
    return inputs, targets


def test_micro_batches_with_50_3_0_and_11_scored_tokens_give_the_gradients_of_the_whole():
    batch = batch_with_scored(50, 3, 0, 11)
    whole, parts = make_step(), make_step(micro_batch_size=4)
    (total, count), (total_in_parts, count_in_parts) = whole.accumulate(*batch), parts.accumulate(*batch)
    assert count == count_in_parts == 64
    assert float(total_in_parts) == pytest.approx(float(total), rel=1e-6)
    expected = gradients(whole.model)
    for name, gradient in gradients(parts.model).items():
        assert (gradient - expected[name]).norm() <= 1e-6 * expected[name].norm(), name


def test_a_batch_with_nothing_to_score_gives_no_loss_and_no_gradient():
    step = make_step(micro_batch_size=4)
    total, count = step.accumulate(*batch_with_scored(0, 0))
    assert (float(total), count) == (0.0, 0)
    assert all(gradient.eq(0).all() for gradient in gradients(step.model).values())


@pytest.mark.parametrize("micro_batch_size", [1, 3, 5, 8, 100])
def test_the_cut_changes_neither_the_printed_loss_nor_the_step(micro_batch_size):
    whole, parts = make_step(), make_step(micro_batch_size=micro_batch_size)
    results = [step(1, 1.0) for step in (whole, parts)]
    assert results[1].loss == pytest.approx(results[0].loss, rel=1e-6)
    assert results[1].tokens == results[0].tokens == 64
    assert results[1].gradient_norm == pytest.approx(results[0].gradient_norm, rel=1e-5)
    for one, other in zip(whole.parameters, parts.parameters, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)  # Adam divides by gradients near 0


def test_the_loss_is_the_mean_over_the_tokens_before_the_update():
    step = make_step()
    inputs, targets = Rows().at(4)
    with torch.no_grad():
        expected = torch.nn.functional.cross_entropy(step.model(inputs).flatten(0, 1), targets.flatten())
    assert step(5, 1.0).loss == pytest.approx(float(expected), rel=1e-6)


class Kept:
    """A tensor that a graph keeps for its backward pass."""

    alive: ClassVar = weakref.WeakSet()

    def __init__(self, tensor):
        self.tensor = tensor
        Kept.alive.add(self)


def test_no_micro_batch_keeps_its_graph_while_another_is_computed():
    """Memory does not grow with the number of micro-batches."""
    model = small_model()
    plain, kept = loss_function(model, Variant()), []

    def watched(inputs, targets):
        kept.append(len(Kept.alive))
        return plain(inputs, targets)

    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        make_step(model, watched, micro_batch_size=1)(1, 1.0)
    assert kept == [0] * 8


def spoiled(model, what):
    """The loss, with an infinite gradient or itself not a number."""
    plain = loss_function(model, Variant())

    def loss(inputs, targets):
        total, count = plain(inputs, targets)
        if what == "gradient":
            total.register_hook(lambda gradient: gradient * math.inf)
            return total, count
        return total * math.nan, count

    return loss


@pytest.mark.parametrize("what", ["gradient", "loss"])
def test_a_step_that_is_not_finite_is_skipped_and_changes_nothing(what):
    model = small_model()
    step = make_step(model)
    step(1, 1.0)  # so that the optimizer has a state
    before = {
        name: tensor.clone() for name, tensor in [*model.state_dict().items(), *step.optimizer.state_dict().items()]
    }
    step.loss = spoiled(model, what)
    result = step(2, 1.0)
    assert result.skipped
    after = {**model.state_dict(), **step.optimizer.state_dict()}
    assert all(torch.equal(after[name], before[name]) for name in before)
    step.loss = loss_function(model, Variant())
    assert not step(3, 1.0).skipped


def test_the_rate_that_is_told_is_the_rate_that_is_used():
    step = make_step()
    step(1, 0.25)
    peak = OptimizerConfig()
    rates = step.optimizer.learning_rates()
    assert rates["matrices"] == 0.25 * peak.matrix_learning_rate
    assert rates["embedding"] == 0.25 * peak.embedding_learning_rate
    assert {group["role"]: group["lr"] for group in step.optimizer.param_groups} == rates


def test_gradients_are_clipped_to_their_bound_and_the_norm_before_is_told():
    step = make_step(max_gradient_norm=1e-3)
    result = step(1, 1.0)
    assert result.gradient_norm > 1e-2
    assert float(torch.stack([p.grad.norm() for p in step.parameters]).norm()) == pytest.approx(1e-3, rel=1e-2)


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_what_is_dropped_follows_from_seed_and_step_alone(seed):
    losses = []
    for disturbed in (False, True):
        step = make_step(small_model(dropout=0.5), seed=seed)
        if disturbed:
            torch.rand(3)
        losses.append([step(7, 0.0).loss, step(8, 0.0).loss, step(7, 0.0).loss])
    assert losses[0] == losses[1]
    assert losses[0][0] == losses[0][2] != losses[0][1]


def test_another_seed_drops_other_numbers():
    losses = [make_step(small_model(dropout=0.5), seed=seed)(7, 0.0).loss for seed in (0, 1)]
    assert losses[0] != losses[1]


# --- memory that does not suffice


class ScarceMemory:
    """A loss that runs out of memory for more rows than there is room for."""

    def __init__(self, model, room):
        self.loss, self.room, self.module = loss_function(model, Variant()), room, model

    def __call__(self, inputs, *rest):
        if len(inputs) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return self.loss(inputs, *rest)


@pytest.mark.parametrize(("room", "rows"), [(8, 8), (7, 4), (3, 2), (1, 1)])
def test_where_the_memory_does_not_suffice_fewer_rows_are_computed_at_once_and_the_step_is_the_same(room, rows):
    model, plain = small_model(), make_step()
    scarce = make_step(model, ScarceMemory(model, room))
    expected, found = plain(1, 0.5), scarce(1, 0.5)
    assert found.micro_batch_size == rows
    assert (found.tokens, found.skipped) == (expected.tokens, False)
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)
    assert found.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-5)
    assert scarce(2, 0.5).micro_batch_size == rows  # and stays so


def test_where_not_even_one_row_fits_the_error_goes_on_its_way():
    model = small_model()
    with pytest.raises(torch.OutOfMemoryError):
        make_step(model, ScarceMemory(model, 0))(1, 0.5)


def test_one_of_several_processes_does_not_change_its_rows_alone():
    model = small_model()
    with pytest.raises(torch.OutOfMemoryError):
        make_step(model, ScarceMemory(model, 2), ranks=Ranks(0, 2).rehearsing())(1, 0.5)


# --- ranks


@pytest.mark.parametrize(("ranks", "micro_batch_size"), [(2, None), (3, None), (3, 2), (8, None), (16, 1)])
def test_the_ranks_together_compute_every_row_once_in_pieces_of_one_size(ranks, micro_batch_size):
    inputs, targets = Rows().at(4)
    scored = []
    for rank in range(ranks):
        step = make_step(micro_batch_size=micro_batch_size, ranks=Ranks(rank, ranks).rehearsing())
        micro_batches = list(step.micro_batches((inputs, targets)))
        assert {len(micro_batch[0]) for micro_batch in micro_batches} == {step.micro_batch_size}
        assert len(micro_batches) == math.ceil(math.ceil(8 / ranks) / step.micro_batch_size)
        scored += [row.tolist() for micro_batch in micro_batches for row in micro_batch[1] if row[0] != IGNORED]
    assert scored == targets.tolist()
    assert not (targets == IGNORED).any()  # who fills up fills up a copy


def test_ranks_drop_different_features():
    model = small_model(dropout=0.5)
    first, second = (make_step(model, ranks=Ranks(rank, 2).rehearsing()) for rank in range(2))
    batch = Rows().at(0)
    same = tuple(part[:1].expand(8, -1).contiguous() for part in batch)
    losses = []
    for step in (first, second):
        torch.manual_seed(step.dropout_seed(1))
        losses.append(float(step.accumulate(*same)[0]))
    assert losses[0] != losses[1]
