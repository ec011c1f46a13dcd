import pytest
import torch

from pellucid.inspection import reading
from tests.train.small_run import small_model


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("fused", [True, False])
def test_afterwards_the_model_is_as_it_was(training, fused):
    model = small_model().train(training).use_fused_attention(fused)
    with reading(model):
        assert not model.training
        assert not torch.is_grad_enabled()
        assert all(block.attention.fused for block in model.blocks)
    assert model.training == training
    assert all(block.attention.fused == fused for block in model.blocks)
    assert torch.is_grad_enabled()


def test_it_is_so_even_if_reading_fails():
    model = small_model().train()
    with pytest.raises(KeyError), reading(model):
        raise KeyError
    assert model.training


def test_the_written_out_reference_can_be_asked_for():
    model = small_model()
    with reading(model, fused=False):
        assert not any(block.attention.fused for block in model.blocks)
