import torch

from pellucid.ladder import worked_example


def test_the_six_words_are_the_textbooks(inputs):
    assert torch.equal(worked_example(), inputs)


def test_each_call_gives_a_tensor_of_its_own():
    worked_example().zero_()
    assert worked_example().count_nonzero() == 18
