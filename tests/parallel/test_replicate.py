import torch

from pellucid.parallel import is_sharded, synchronised
from tests.train.small_run import small_model


def test_a_model_on_one_process_is_not_cut_and_has_nothing_to_synchronise():
    model = small_model()
    assert not is_sharded(model)
    with synchronised(model, last=False):
        model(torch.zeros(1, 4, dtype=torch.int64)).sum().backward()
    assert model.lm_head.weight.grad is not None
