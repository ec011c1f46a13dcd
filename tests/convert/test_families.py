"""The tables hold every tensor of a family, and read back give the same bytes."""

import pytest
import torch

from pellucid.convert.families import FAMILIES, NEUTRAL, WITHOUT_MEANING
from pellucid.convert.huggingface_config import to_model_config
from pellucid.convert.names import names_by_address, to_ours, to_theirs
from pellucid.nn import TransformerLM
from tests.convert import random_models


@pytest.mark.parametrize("name", [*random_models.FAMILIES, "gpt2"])
def test_there_and_back_every_tensor_is_the_same(name):
    theirs = random_models.make_gpt2() if name == "gpt2" else random_models.make_model(name)
    config, family = to_model_config(theirs.config.to_dict()), FAMILIES[theirs.config.model_type]
    weights = theirs.state_dict()
    ours = to_ours(weights, family.weights, config)
    assert ours.keys() == TransformerLM(config).state_dict().keys()
    back = to_theirs(ours, family.weights, config)
    assert back.keys() == weights.keys()
    assert all(torch.equal(back[name], tensor) for name, tensor in weights.items())


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_no_name_stands_twice(family):
    names = [name for names in names_by_address(family.weights, 2).values() for name in names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_field_is_in_one_table(family):
    told = {*family.sizes.values(), *(field.theirs for field in family.fields)}
    assert len(told) == len(family.sizes) + len(family.fields)
    assert not told & (WITHOUT_MEANING | NEUTRAL.keys())
