import pytest
import torch

from pellucid.train.live_bytes import LiveBytes

KILOBYTE = 1000


def numbers(count=KILOBYTE // 4, **how):
    return torch.zeros(count, **how)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_is_made_counts_until_it_is_forgotten(device):
    with LiveBytes() as live:
        first = numbers(device=device)
        second = first + 1
        assert live.now == 2 * KILOBYTE
        del first
        third = second * 2
        assert (live.now, live.peak) == (2 * KILOBYTE, 2 * KILOBYTE)
    assert third.numel() == second.numel()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_autograd_keeps_is_counted_and_given_back_with_the_graph(device):
    weight = numbers(device=device).requires_grad_()
    with LiveBytes() as live:
        total = (weight.exp() * weight).sum()
        assert live.now >= KILOBYTE
        total.backward()
        del total
    assert live.now == KILOBYTE
    assert weight.grad is not None


def test_what_was_there_before_is_not_counted_when_it_is_changed_in_place_or_looked_at():
    before = numbers()
    with LiveBytes() as live:
        before.add_(1)
        view = before[3:].view(-1)
        view.mul_(2)
    assert live.peak == 0


def test_views_are_counted_once():
    with LiveBytes() as live:
        whole = numbers()
        parts = whole.split(10)
    assert live.now == KILOBYTE
    assert len(parts) == 25
