import pytest
import torch

from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.optim.groups import fused_slices, parameter_groups
from pellucid.training_config import OptimizerConfig

SIZES = {"vocab_size": 50, "context_length": 16, "d_model": 32, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2}
SETTINGS = OptimizerConfig(
    matrix_learning_rate=0.1,
    matrix_weight_decay=0.2,
    embedding_learning_rate=0.3,
    head_learning_rate=0.4,
    vector_learning_rate=0.5,
    embedding_weight_decay=0.6,
)


def by_role(settings=SETTINGS, **choices):
    model = TransformerLM(ModelConfig(**SIZES | choices))
    return model, {group.role: group for group in parameter_groups(model, settings)}


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"tie_embeddings": True, "qk_norm": "head"},
        {"norm": "layer", "positions": "learned", "feed_forward": "gelu", "qkv_bias": True, "head_bias": True},
        {"norm": "none", "norm_placement": "sandwich"},
    ],
)
def test_every_parameter_is_in_exactly_one_group(choices):
    model, groups = by_role(**choices)
    grouped = [parameter for group in groups.values() for parameter in group.parameters.values()]
    assert len(grouped) == len({id(parameter) for parameter in grouped})
    assert {id(parameter) for parameter in grouped} == {id(parameter) for parameter in model.parameters()}


def test_matrices_inside_blocks_and_nothing_else_go_to_muon():
    _, groups = by_role(qk_norm="head", qkv_bias=True, positions="learned")
    muon = [name for group in groups.values() if group.algorithm == "muon" for name in group.parameters]
    parts = [
        "attention.output",
        "feed_forward.gate",
        "feed_forward.up",
        "feed_forward.down",
        "attention.query_key_value",
    ]
    assert sorted(muon) == sorted(f"blocks.{layer}.{part}.weight" for layer in range(2) for part in parts)


def test_each_role_has_its_own_rate_and_only_matrices_and_tables_decay():
    _, groups = by_role(positions="learned", head_bias=True)
    assert {role: (group.learning_rate, group.weight_decay) for role, group in groups.items()} == {
        "matrices": (0.1, 0.2),
        "fused": (0.1, 0.2),
        "embedding": (0.3, 0.6),
        "head": (0.4, 0.6),
        "vectors": (0.5, 0.0),
    }
    assert set(groups["embedding"].parameters) == {"token_embedding.weight", "position_embedding.weight"}
    assert "lm_head.bias" in groups["vectors"].parameters


def test_a_tied_matrix_is_trained_as_the_head_and_by_adamw():
    _, groups = by_role(tie_embeddings=True)
    assert "embedding" not in groups
    assert list(groups["head"].parameters) == ["token_embedding.weight"]
    assert groups["head"].algorithm == "adamw"


def test_adamw_can_be_chosen_for_the_matrices_too():
    _, groups = by_role(OptimizerConfig(matrix_algorithm="adamw"))
    assert {group.algorithm for group in groups.values()} == {"adamw"}


def test_frozen_parameters_are_left_out():
    model = TransformerLM(ModelConfig(**SIZES))
    model.token_embedding.weight.requires_grad_(False)
    assert "embedding" not in {group.role for group in parameter_groups(model, SETTINGS)}


@pytest.mark.parametrize(
    ("attention_slices", "expected"), [("whole", None), ("parts", (32, 16, 16)), ("heads", (8,) * 8)]
)
def test_the_fused_matrix_is_cut_as_asked(attention_slices, expected):
    _, groups = by_role(OptimizerConfig(attention_slices=attention_slices))
    assert groups["fused"].row_slices == expected


def test_the_cuts_are_those_the_model_itself_makes():
    model, groups = by_role()
    assert groups["fused"].row_slices == model.blocks[0].attention.slices
    assert fused_slices(model.config, "parts") == model.blocks[0].attention.slices


def test_a_wrapped_model_is_refused_because_names_are_roles():
    model = torch.nn.Module()
    model.module = TransformerLM(ModelConfig(**SIZES))
    with pytest.raises(AssertionError, match="wrapper"):
        parameter_groups(model, SETTINGS)
