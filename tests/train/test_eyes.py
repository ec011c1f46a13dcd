import math

import pytest
import torch

from pellucid.optim import build_optimizer
from pellucid.parallel import Ranks
from pellucid.train.eyes import Eyes, of_any_rank
from pellucid.train.first_non_finite import FirstNonFinite
from pellucid.train.step import TrainStep
from pellucid.train.variant import Variant, loss_function
from pellucid.training_config import OptimizerConfig
from tests.train.small_run import Heard, small_model


class Rows:
    """A batch for each step."""

    batch_size, context_length = 4, 8

    def at(self, step):
        ids = torch.randint(0, 24, (4, 9), generator=torch.Generator().manual_seed(step))
        return ids[:, :-1], ids[:, 1:]

    def epochs_after(self, step):
        return 0.0


def eyes(interval=None, **model):
    model = small_model(num_layers=2, **model).train()
    loss = loss_function(model, Variant())
    optimizer = build_optimizer(model, OptimizerConfig())
    step = TrainStep(model, loss, optimizer, Rows(), max_gradient_norm=1.0, micro_batch_size=2)
    return Eyes(observe=Heard(), train_step=step, loss=loss, interval=interval)


def looked_at(eyes, steps, evaluated=()):
    for step in range(1, steps + 1):
        eyes.open(step, evaluated=step in evaluated)
        eyes.train_step(step, 0.1)
        eyes.look(step)
    return [health.step for health in eyes.observe]


@pytest.mark.parametrize(("interval", "steps"), [(None, [3, 6]), (2, [2, 4, 6]), (1, [1, 2, 3, 4, 5, 6]), (0, [])])
def test_modules_are_looked_at_when_the_run_is_evaluated_or_at_an_interval(interval, steps):
    assert looked_at(eyes(interval), 6, evaluated=(3, 6)) == steps


def test_a_look_sees_the_update_of_its_own_step():
    there = eyes(interval=1)
    there.open(1, evaluated=False)
    before = there.train_step.model.lm_head.weight.detach().clone()
    there.train_step(1, 1.0)
    there.look(1)
    figures = there.observe[0].modules["lm_head"]
    moved = there.train_step.model.lm_head.weight.detach() - before
    assert figures["update_ratio"] == pytest.approx((moved.norm() / before.norm()).item(), rel=1e-3)
    assert figures["gradient"] > 0
    assert there.before is None


def test_a_run_that_is_looked_at_is_the_run_that_is_not_bit_for_bit():
    seen, unseen = eyes(interval=1, dropout=0.2), eyes(interval=0, dropout=0.2)
    looked_at(seen, 5)
    seen.first_non_finite(5)
    looked_at(unseen, 5)
    for one, other in zip(seen.train_step.parameters, unseen.train_step.parameters, strict=True):
        assert torch.equal(one, other)


def test_of_a_skipped_step_the_module_is_named():
    there = eyes()
    with torch.no_grad():
        there.train_step.model.blocks[1].feed_forward.down.weight[0, 0] = math.inf
    assert there.train_step(1, 0.1).skipped
    assert there.first_non_finite(1) == (
        "the first that was not finite: the output of blocks.1.feed_forward.down (its weights were not finite)"
    )


def test_a_gradient_gone_bad_in_one_step_is_skipped_counted_and_named():
    there = eyes()
    weight = there.train_step.model.blocks[0].attention.output.weight
    before = weight.detach().clone()
    handle = weight.register_hook(lambda gradient: gradient * math.inf)
    assert there.train_step(1, 0.1).skipped
    assert "gradient of the weights of blocks.0.attention.output" in there.first_non_finite(1)
    handle.remove()
    assert torch.equal(weight, before)
    assert not there.train_step(2, 0.1).skipped


def test_what_went_bad_in_the_step_alone_is_told_from_its_own_gradients():
    there = eyes()
    there.train_step(1, 0.1)
    for part in ("gate", "up"):
        there.train_step.model.get_parameter(f"blocks.0.feed_forward.{part}.weight").grad[0] = math.nan
    assert there.first_non_finite(1) == (
        "the gradient of blocks.0.feed_forward.gate.weight and 1 more was not finite;"
        " computed once more, eagerly, every output and every gradient was finite"
    )


def test_without_a_step_there_is_nothing_to_see():
    closed = Eyes()
    closed.open(1, evaluated=True)
    closed.look(1)
    assert closed.first_non_finite(1) == ""


@pytest.mark.parametrize("found_by", [0, 1, 2])
def test_what_one_rank_found_all_ranks_say(found_by):
    found = FirstNonFinite(module="b", what="gradient", input_finite=False)
    given = []

    class Gathering(Ranks):
        def sum(self, numbers):
            given.append(list(numbers))
            return [sum(column) for column in zip(*given, strict=True)]

    said = [of_any_rank(found if rank == found_by else None, ["a", "b"], Gathering(rank, 3)) for rank in range(3)]
    assert said[-1] == found
    assert of_any_rank(None, ["a", "b"], Ranks()) is None
