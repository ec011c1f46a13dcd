import pytest
import torch

from pellucid.checkpoint import RunFolder
from pellucid.errors import RunFolderError
from pellucid.optim import WeightAverage, build_optimizer
from pellucid.parallel import Ranks
from pellucid.train.keeper import Keeper
from pellucid.train.progress import Progress
from pellucid.training_config import OptimizerConfig
from tests.train.small_run import small_model


@pytest.fixture
def keeper_of(tmp_path):
    def make(average=None, **rest):
        model = small_model()
        optimizer = build_optimizer(model, OptimizerConfig())
        if average:
            optimizer.average = WeightAverage(model, average)
        folder = tmp_path / "run"
        folder = RunFolder.open(folder) if folder.exists() else RunFolder.create(folder, {})
        return Keeper(folder=folder, model=model, optimizer=optimizer, **rest)

    return make


def take_a_step(keeper):
    keeper.model(torch.zeros(2, 8, dtype=torch.int64)).square().mean().backward()
    keeper.optimizer.step()


def progress(step=1):
    return Progress(steps=10, planned_steps=10, decay_begins=5, step=step)


def test_the_mean_of_the_weights_is_judged_and_kept_and_the_weights_come_back(keeper_of):
    keeper = keeper_of(average=0.5)
    take_a_step(keeper)
    take_a_step(keeper)
    own = keeper.model.lm_head.weight.clone()
    mean = keeper.optimizer.average.averages["lm_head.weight"].clone()
    keeper.best(2)
    assert torch.equal(keeper.model.lm_head.weight, own)
    assert torch.equal(keeper.folder.load_model().lm_head.weight, mean)
    assert not torch.equal(own, mean)


def test_a_checkpoint_has_both_and_restores_both(keeper_of):
    keeper = keeper_of(average=0.5)
    take_a_step(keeper)
    saved = keeper.folder.load_checkpoint(keeper.checkpoint(progress()))
    again = keeper_of(average=0.5)
    again.restore(saved.optimizer)
    assert again.optimizer.average.updates == 1
    for name, mean in keeper.optimizer.average.averages.items():
        assert torch.equal(again.optimizer.average.averages[name], mean)
    here, there = again.optimizer.state_dict(), keeper.optimizer.state_dict()
    assert all(torch.equal(here[name], there[name]) for name in here | there)
    assert torch.equal(saved.model["lm_head.weight"], keeper.model.lm_head.weight)


def test_a_mean_that_was_not_saved_is_missed(keeper_of):
    keeper = keeper_of()
    take_a_step(keeper)
    saved = keeper.folder.load_checkpoint(keeper.checkpoint(progress()))
    with pytest.raises(RunFolderError, match="the average of this very model"):
        keeper_of(average=0.5).restore(saved.optimizer)


def test_only_the_first_of_several_writes(keeper_of):
    keeper = keeper_of(ranks=Ranks(1, 2))
    take_a_step(keeper)
    keeper.best(1)
    keeper.checkpoint(progress())
    assert not (keeper.folder.path / "model.safetensors").exists()
    assert keeper.folder.checkpoints() == []


@pytest.mark.parametrize(("keep", "kept"), [(0, [4]), (2, [2, 3, 4])])
def test_as_many_checkpoints_are_kept_as_asked(keeper_of, keep, kept):
    keeper = keeper_of(keep_more=keep)
    take_a_step(keeper)
    for step in range(1, 5):
        keeper.checkpoint(progress(step))
    assert [info.step for info in keeper.folder.checkpoints()] == kept


def test_after_a_kill_between_the_two_the_best_checkpoint_gives_its_weights_or_their_mean(keeper_of):
    keeper = keeper_of(average=0.5)
    keeper.folder.save_config(keeper.model.config)
    for _ in range(2):
        take_a_step(keeper)
    keeper.checkpoint(progress(2))
    mean = keeper.optimizer.average.averages["lm_head.weight"].clone()
    keeper.best_again()
    assert torch.equal(keeper.folder.load_model().lm_head.weight, mean)
