"""Weights go where they belong, in whatever way a family keeps them; what is not the model's is named."""

import pytest
import torch

from pellucid.convert import CS336, FAMILIES, to_theirs
from pellucid.convert.filling import HeldWeights, as_stored, filled, number_type_of
from pellucid.convert.gguf_families import GGUF_FAMILIES
from pellucid.errors import ModelFileError
from pellucid.nn import TransformerLM

SIZES = {"vocab_size": 11, "d_model": 24, "num_heads": 6, "num_layers": 2, "context_length": 8}
TABLES = {
    **{name: (family.preset, family.weights) for name, family in FAMILIES.items()},
    **{f"gguf {name}": (family.preset, family.weights) for name, family in GGUF_FAMILIES.items()},
}


def made(name, **fields):
    preset, table = TABLES[name]
    model = TransformerLM(preset(**{**SIZES, **({} if "gpt2" in name else {"num_kv_heads": 3}), **fields})).eval()
    tensors = model.state_dict()
    if model.config.tie_embeddings:
        tensors.pop("lm_head.weight")
    return model, HeldWeights(to_theirs(tensors, table, model.config)), table


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("tied", [False, True])
def test_what_to_theirs_takes_apart_is_put_together_again(name, tied):
    model, weights, table = made(name, tie_embeddings=tied)
    back = filled(weights, table, model.config, told_by="it")
    assert not back.training
    expected = model.state_dict()
    assert all(torch.equal(tensor, expected[ours]) for ours, tensor in back.state_dict().items())
    kept = as_stored(weights, table, model.config, told_by="it")
    assert kept.keys() == expected.keys() - ({"lm_head.weight"} if tied else set())
    assert all(torch.equal(tensor, expected[ours]) for ours, tensor in kept.items())


def test_each_tensor_keeps_its_own_type_and_a_model_has_the_one_that_holds_all():
    model, weights, table = made("qwen3")
    for name in weights:
        if "norm" not in name:
            weights[name] = weights[name].bfloat16()
    kept = as_stored(weights, table, model.config, told_by="it")
    assert kept["final_norm.weight"].dtype == torch.float32
    assert kept["blocks.0.attention.query_key_value.weight"].dtype == torch.bfloat16
    assert {one.dtype for one in filled(weights, table, model.config, told_by="it").parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("kept", "used"),
    [
        ({torch.bfloat16}, torch.bfloat16),
        ({torch.float16}, torch.float32),
        ({torch.bfloat16, torch.float16}, torch.float32),
        ({torch.float32, torch.bfloat16}, torch.float32),
    ],
)
def test_the_type_that_holds_all(kept, used):
    assert number_type_of(HeldWeights({str(kind): torch.ones(1, dtype=kind) for kind in kept})) == used


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.float64])
def test_other_types_are_refused_by_the_tensors_name(kind):
    with pytest.raises(ModelFileError, match=r"odd as (int8|uint8|float64)"):
        number_type_of(HeldWeights(odd=torch.ones(1, dtype=kind)))


@pytest.mark.parametrize("read", [filled, as_stored])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda weights: weights.pop("model.norm.weight"), r"model\.norm\.weight is missing"),
        (lambda weights: weights.update(odd=torch.ones(1)), "odd is unknown"),
        (lambda weights: weights.update({"model.norm.weight": torch.ones(3)}), r"has shape \(3,\), not \(24,\)"),
    ],
)
def test_what_is_not_the_models_is_named(read, change, words):
    model, weights, table = made("llama")
    change(weights)
    with pytest.raises(ModelFileError, match=words):
        read(weights, table, model.config, told_by="it")


def test_a_part_that_a_family_has_no_name_for_is_told():
    model, weights, _ = made("llama", qkv_bias=True)
    with pytest.raises(ModelFileError, match=r"bias has no name there"):
        filled(weights, CS336, model.config, told_by="it")
