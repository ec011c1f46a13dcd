import json
import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid.checkpoint.state_tree import put_together, take_apart

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
keys = st.text() | st.sampled_from(["$tensor", "$tuple", "$items", "a/b"])
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner),
    max_leaves=20,
)


def through_json(tree):
    tensors = {}
    return put_together(json.loads(json.dumps(take_apart(tree, "x", tensors), allow_nan=False)), tensors)


@given(trees)
def test_any_tree_comes_back_exactly(tree):
    assert through_json(tree) == tree
    assert repr(through_json(tree)) == repr(tree)  # tells a list from a tuple and 1 from 1.0 and True


def test_nan_and_whole_number_keys_come_back():
    back = through_json({"loss": math.nan, "state": {0: {"step": 1}, 1: {"step": 2}}})
    assert math.isnan(back["loss"])
    assert back["state"] == {0: {"step": 1}, 1: {"step": 2}}


def test_random_streams_of_python_numpy_and_torch_come_back_exactly():
    streams = {
        "python": random.Random(3).getstate(),
        "numpy": np.random.default_rng(3).bit_generator.state,
        "torch": torch.Generator().manual_seed(3).get_state(),
    }
    back = through_json(streams)
    assert back["python"] == streams["python"]
    assert back["numpy"] == streams["numpy"]
    assert torch.equal(back["torch"], streams["torch"])


def test_an_optimizers_own_state_comes_back_exactly():
    weight = torch.nn.Parameter(torch.randn(3, 2))
    optimizer = torch.optim.AdamW([weight], lr=0.1, betas=(0.8, 0.9))
    weight.square().sum().backward()
    optimizer.step()
    back = through_json(optimizer.state_dict())
    assert back["param_groups"] == optimizer.state_dict()["param_groups"]
    for name, value in optimizer.state_dict()["state"][0].items():
        assert torch.equal(back["state"][0][name], value)


def test_what_cannot_be_stored_is_refused_with_its_place():
    with pytest.raises(TypeError, match="x/groups/1: cannot store a set"):
        take_apart({"groups": [1, {2}]}, "x", {})


def test_keys_that_would_be_one_tensor_name_are_refused():
    with pytest.raises(TypeError, match="differ when written out"):
        take_apart({1: torch.zeros(1), "1": torch.zeros(1)}, "x", {})


def test_an_unknown_kind_of_value_is_refused():
    with pytest.raises(ValueError, match="no kind of value"):
        put_together({"$code": "print(1)"}, {})
