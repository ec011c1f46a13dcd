import math

import pytest
import torch
from torch import nn

from pellucid.train.addresses import addresses, is_finite, tensors_in
from tests.train.small_run import small_model


def test_every_module_that_computes_has_its_public_address():
    found = dict(addresses(small_model(num_layers=2)))
    for address in ("token_embedding", "blocks.1", "blocks.0.attention.query_key_value", "final_norm", "lm_head"):
        assert isinstance(found[address], nn.Module)
    assert not {"", "blocks"} & set(found)


def test_tensors_are_found_however_they_are_packed_and_ids_are_none():
    x, ids = torch.ones(2), torch.ones(2, dtype=torch.long)
    assert [tensor is x for tensor in tensors_in((x, [ids, (x,)], None, "x"))] == [True, True]


@pytest.mark.parametrize(("number", "finite"), [(1.0, True), (math.nan, False), (math.inf, False), (-math.inf, False)])
def test_one_number_decides(number, finite):
    assert is_finite(torch.tensor([[0.0, number]], requires_grad=True)) == finite
