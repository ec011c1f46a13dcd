import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pellucid.errors import ShapeError
from pellucid.nn import Embedding
from pellucid.nn.embedding import look_up


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@given(ids=st.lists(st.integers(0, 9), max_size=12))
def test_a_look_up_equals_a_one_hot_product(dtype, ids):
    table, ids = Embedding(10, 4, dtype=dtype), torch.tensor(ids, dtype=torch.int64)
    assert torch.equal(table(ids), functional.one_hot(ids, 10).to(dtype) @ table.weight)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("integer", [torch.int64, torch.int32])
def test_ids_of_any_shape_each_become_a_vector(shape, integer):
    ids = torch.randint(10, shape, dtype=integer)
    assert Embedding(10, 4)(ids).shape == (*shape, 4)


def test_a_row_looked_up_twice_gathers_both_gradients():
    table = Embedding(4, 3)
    table(torch.tensor([1, 1, 2])).sum().backward()
    assert table.weight.grad[:, 0].tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_fresh_table_is_a_unit_normal_cut_at_three(dtype):
    weight = Embedding(500, 400, dtype=dtype).weight.detach().double()
    assert weight.std() == pytest.approx(0.9866, abs=0.01)  # of a unit normal cut at 3
    assert 2.9 < weight.abs().max() <= 3


@pytest.mark.parametrize("absent", [-1, -10, 10, 10**12])
def test_an_absent_row_is_refused_by_both_numbers(absent):
    with pytest.raises(ShapeError, match=rf"token ids from 0 to 9 \(vocab_size=10\), but got token id {absent}:"):
        Embedding(10, 4)(torch.tensor([3, absent]))


def test_an_absent_position_is_called_a_position():
    with pytest.raises(ShapeError, match=r"positions from 0 to 3 \(context_length=4\), but got position 4:"):
        look_up(torch.tensor([4]), torch.randn(4, 2), "position")


def test_a_look_up_compiles_into_one_graph(no_shape_checks):
    table, ids = torch.randn(5, 3), torch.tensor([4, 0])
    compiled = torch.compile(look_up, fullgraph=True, backend="eager")
    assert torch.equal(compiled(ids, table), table[ids])
