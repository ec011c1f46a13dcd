import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid.convert.names import (
    CS336,
    Family,
    Row,
    halves_to_neighbours,
    neighbours_to_halves,
    to_ours,
    to_theirs,
)
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

CONFIG = ModelConfig(vocab_size=11, context_length=8, d_model=16, num_layers=2, num_heads=4, num_kv_heads=2, d_ff=32)

EVERYTHING = Family(
    name="a family with biases and norms",
    pair_order="neighbours",
    rows=(
        *CS336.rows,
        Row("blocks.{i}.attention.query_key_value.bias", "layers.{i}.q.bias", "layers.{i}.k.bias", "layers.{i}.v.bias"),
        Row("blocks.{i}.attention.query_norm.weight", "layers.{i}.q_norm.weight"),
        Row("blocks.{i}.attention.key_norm.weight", "layers.{i}.k_norm.weight"),
    ),
)


def weights_of(config):
    torch.manual_seed(0)
    return {name: torch.randn_like(value) for name, value in TransformerLM(config).state_dict().items()}


def test_the_table_names_every_weight_of_the_course():
    theirs = to_theirs(weights_of(CONFIG), CS336, CONFIG)
    layer = [
        "attn.q_proj",
        "attn.k_proj",
        "attn.v_proj",
        "attn.output_proj",
        "ln1",
        "ln2",
        "ffn.w1",
        "ffn.w2",
        "ffn.w3",
    ]
    expected = {f"layers.{i}.{part}.weight" for i in range(2) for part in layer}
    assert set(theirs) == expected | {"token_embeddings.weight", "ln_final.weight", "lm_head.weight"}


@pytest.mark.parametrize("choices", [{}, {"qkv_bias": True, "qk_norm": "head"}, {"qk_norm": "projection"}])
def test_there_and_back_is_the_same(choices):
    config = dataclasses.replace(CONFIG, **choices)
    ours = weights_of(config)
    back = to_ours(to_theirs(ours, EVERYTHING, config), EVERYTHING, config)
    assert back.keys() == ours.keys()
    assert all(back[name].equal(value) for name, value in ours.items())


def test_queries_keys_and_values_keep_their_own_shapes():
    theirs = to_theirs(weights_of(CONFIG), CS336, CONFIG)
    shapes = [tuple(theirs[f"layers.0.attn.{part}_proj.weight"].shape) for part in "qkv"]
    assert shapes == [(16, 16), (8, 16), (8, 16)]


def test_values_are_never_reordered():
    ours = weights_of(CONFIG)
    theirs = to_theirs(ours, CS336, CONFIG)
    value = ours["blocks.1.attention.query_key_value.weight"][24:]
    assert theirs["layers.1.attn.v_proj.weight"].equal(value)


def test_without_rope_nothing_is_reordered():
    config = dataclasses.replace(CONFIG, positions="none")
    ours = weights_of(config)
    theirs = to_theirs(ours, CS336, config)
    query = ours["blocks.0.attention.query_key_value.weight"][:16]
    assert theirs["layers.0.attn.q_proj.weight"].equal(query)


@pytest.mark.parametrize("qk_norm", ["head", "projection"])
def test_reordered_weights_biases_and_norms_give_the_reordered_queries(qk_norm):
    config = dataclasses.replace(CONFIG, qkv_bias=True, qk_norm=qk_norm)
    model = TransformerLM(config)
    model.load_state_dict(weights_of(config))
    attention = model.blocks[0].attention
    x = torch.randn(1, 3, 16)
    attention.rotary = None  # compare what is turned, before it is turned
    query, key, value = attention.project(x)

    theirs = to_theirs(model.state_dict(), EVERYTHING, config)

    def project(part):
        return x @ theirs[f"layers.0.attn.{part}_proj.weight"].T + theirs[f"layers.0.{part}.bias"]

    def norm(y, part):
        return (
            y
            * (y.square().mean(-1, keepdim=True) + config.norm_epsilon).rsqrt()
            * theirs[f"layers.0.{part}_norm.weight"]
        )

    def by_head(y):
        return y.unflatten(-1, (-1, 4)).transpose(1, 2)

    for ours, part in ((query, "q"), (key, "k")):
        expected = norm(by_head(project(part)), part) if qk_norm == "head" else by_head(norm(project(part), part))
        torch.testing.assert_close(halves_to_neighbours(ours, 4, dim=-1), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(value, by_head(project("v")))


def test_a_family_that_stores_them_fused_is_reordered_all_the_same():
    fused = Family(
        name="fused",
        pair_order="neighbours",
        rows=(Row("blocks.{i}.attention.query_key_value.weight", "h.{i}.qkv.weight"),),
    )
    ours = {"blocks.0.attention.query_key_value.weight": torch.randn(32, 16)}
    theirs = to_theirs(ours, fused, CONFIG)["h.0.qkv.weight"]
    apart = to_theirs(ours, CS336, CONFIG)
    assert theirs.equal(torch.cat([apart[f"layers.0.attn.{part}_proj.weight"] for part in "qkv"]))


def test_halves_are_read_as_they_are():
    same = dataclasses.replace(CS336, pair_order="halves")
    ours = weights_of(CONFIG)
    query = ours["blocks.0.attention.query_key_value.weight"][:16]
    assert to_theirs(ours, same, CONFIG)["layers.0.attn.q_proj.weight"].equal(query)


@given(heads=st.integers(1, 4), half=st.integers(1, 5), before=st.booleans())
def test_reordering_is_undone_by_its_inverse_on_any_axis(heads, half, before):
    x = torch.arange(heads * half * 2 * 3).reshape(heads * half * 2, 3)
    x, dim = (x, 0) if before else (x.T, -1)
    assert halves_to_neighbours(neighbours_to_halves(x, 2 * half, dim), 2 * half, dim).equal(x)


def test_neighbours_become_halves_head_by_head():
    assert neighbours_to_halves(torch.arange(8), 4).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_an_unknown_name_is_refused_or_left_out():
    theirs = to_theirs(weights_of(CONFIG), CS336, CONFIG) | {"layers.0.attn.rope.cos": torch.ones(1)}
    with pytest.raises(ModelFileError, match="rope"):
        to_ours(theirs, CS336, CONFIG)
    assert set(to_ours(theirs, CS336, CONFIG, strict=False)) == set(weights_of(CONFIG))


def test_more_layers_than_the_model_has_are_refused():
    theirs = to_theirs(weights_of(CONFIG), CS336, CONFIG)
    with pytest.raises(ModelFileError, match=r"layers\.1"):
        to_ours(theirs, CS336, dataclasses.replace(CONFIG, num_layers=1))


def test_a_query_without_its_value_is_refused_by_name():
    theirs = to_theirs(weights_of(CONFIG), CS336, CONFIG)
    del theirs["layers.1.attn.v_proj.weight"]
    with pytest.raises(ModelFileError, match=r"no layers\.1\.attn\.v_proj"):
        to_ours(theirs, CS336, CONFIG)


def test_a_part_the_family_does_not_have_is_refused():
    config = dataclasses.replace(CONFIG, qkv_bias=True)
    with pytest.raises(ModelFileError, match="bias"):
        to_theirs(weights_of(config), CS336, config)
