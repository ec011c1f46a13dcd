import torch

from pellucid.optim import cut_like, whole_state
from pellucid.optim.sharded import here, is_cut, whole


def test_on_one_process_a_tensor_is_whole_and_here():
    tensor = torch.ones(3)
    assert not is_cut(tensor)
    assert here(tensor) is whole(tensor) is cut_like(tensor, torch.zeros(3)) is tensor


def test_a_state_that_nobody_keeps_is_empty():
    assert whole_state({"a": torch.ones(2)}, keep=False) == {}


def test_a_tensor_of_two_names_stays_one_tensor():
    tied = torch.nn.Parameter(torch.ones(2))
    state = whole_state({"a": tied, "b": tied}, keep=True)
    assert state["a"].data_ptr() == state["b"].data_ptr() == tied.data_ptr()
