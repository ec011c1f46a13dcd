"""Memory of a step, by the allocator's record."""

import torch
from torch import nn

from pellucid.bench.memory import held_bytes, peak_growth_bytes


def test_what_is_freed_counts_while_it_lives():
    def step():
        first = torch.ones(1000)  # 4,000 bytes
        second = first + 1  # 8,000 together
        del first
        return second * 2  # again 8,000

    assert 8000 <= peak_growth_bytes(step) < 8100  # the numbers 1 and 2 are tensors, too


def test_what_was_there_before_does_not_count():
    held = [torch.ones(1000)]
    assert peak_growth_bytes(held.clear) == 0


def test_backward_needs_what_forward_kept():
    weight = torch.ones(100, 100, requires_grad=True)

    def step():
        x = torch.ones(50, 100)
        for _ in range(3):
            x = torch.relu(x @ weight)
        x.sum().backward()

    assert peak_growth_bytes(step) >= 3 * 50 * 100 * 4  # three activations at least
    assert peak_growth_bytes(step) < 20 * 50 * 100 * 4


def test_weights_gradients_and_the_optimizers_memory_are_held():
    model = nn.Linear(10, 10, bias=False)
    optimizer = torch.optim.AdamW(model.parameters())
    assert held_bytes(model, [optimizer]) == 400
    model(torch.ones(1, 10)).sum().backward()
    assert held_bytes(model, [optimizer]) == 800
    optimizer.step()
    assert held_bytes(model, [optimizer]) == 1600 + 4  # two means, and a count of steps


def test_a_tied_weight_is_held_once():
    model = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 10, bias=False))
    model[1].weight = model[0].weight
    assert held_bytes(model, []) == 400


def test_the_profilers_library_writes_nothing(capfd):
    peak_growth_bytes(lambda: torch.ones(3))
    assert capfd.readouterr() == ("", "")
