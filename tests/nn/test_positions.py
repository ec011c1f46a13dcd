import pytest
import torch

from pellucid.errors import ShapeError
from pellucid.nn import LearnedPositions


def test_each_position_has_its_own_row_in_any_order():
    table, positions = LearnedPositions(8, 4), torch.tensor([[5, 0, 7], [2, 2, 1]])
    assert torch.equal(table(positions), table.weight[positions])


@pytest.mark.parametrize("position", [8, 100, -1])
def test_a_position_outside_the_table_is_refused_by_both_numbers(position):
    with pytest.raises(ShapeError, match=rf"0 to 7 \(context_length=8\), but got position {position}: shorten"):
        LearnedPositions(8, 4)(torch.tensor([0, position]))


def test_the_last_position_is_not_outside():
    assert LearnedPositions(8, 4)(torch.tensor([7])).shape == (1, 4)
