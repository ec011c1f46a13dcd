"""The tables of torch checkpoints: every address of their models has one name, and each family is told by its marks."""

import pytest
import torch

from pellucid.convert import to_theirs
from pellucid.convert.torch_families import TORCH_FAMILIES
from pellucid.nn import TransformerLM

SIZES = {"vocab_size": 11, "d_model": 24, "num_heads": 6, "num_layers": 2, "context_length": 8}


@pytest.mark.parametrize("family", TORCH_FAMILIES, ids=lambda family: family.weights.name)
def test_a_familys_weights_are_known_by_its_marks_before_any_others(family):
    model = TransformerLM(family.preset(**SIZES))
    names = to_theirs(model.state_dict(), family.weights, model.config).keys()
    assert next(one for one in TORCH_FAMILIES if one.marks <= names) is family


@pytest.mark.parametrize("family", TORCH_FAMILIES, ids=lambda family: family.weights.name)
def test_no_name_stands_for_two_weights(family):
    names = [name for row in family.weights.rows for name in row.theirs]
    assert len(names) == len(set(names))
    assert torch.is_tensor(TransformerLM(family.preset(**SIZES)).lm_head.weight)
