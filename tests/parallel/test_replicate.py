import contextlib

import torch

from pellucid.parallel import is_sharded, replicate, synchronised
from tests.train.small_run import small_model


def test_a_model_on_one_process_is_not_cut_and_has_nothing_to_synchronise():
    model = small_model()
    assert not is_sharded(model)
    with synchronised(model, last=False):
        model(torch.zeros(1, 4, dtype=torch.int64)).sum().backward()
    assert model.lm_head.weight.grad is not None


def test_only_the_last_micro_batch_of_a_step_speaks_to_the_other_ranks(monkeypatch):
    kept_silent = []

    class Replica(torch.nn.Linear):
        def no_sync(self):
            kept_silent.append(True)
            return contextlib.nullcontext()

    monkeypatch.setattr(replicate, "DistributedDataParallel", Replica)
    module = Replica(2, 2)
    for number in range(1, 5):
        with synchronised(module, last=number == 4):
            pass
    assert len(kept_silent) == 3


def test_every_part_of_a_cut_model_is_told_when_to_speak():
    told = []

    class Cut(torch.nn.Linear):
        def set_requires_gradient_sync(self, requires):
            told.append(requires)

    whole = torch.nn.Sequential(Cut(2, 2))
    assert is_sharded(whole[0])
    for last in (False, True):
        with synchronised(whole, last):
            pass
    assert told == [False, True]
