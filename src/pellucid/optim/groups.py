"""Which weights are moved how: parameters sorted by the role they play.

    role        which                                          algorithm        decay
    matrices    every two-axis weight inside a block           Muon (or AdamW)  matrix_weight_decay
    fused       the query, key and value matrix of a block     as matrices, its parts apart
    embedding   token and position embeddings                  AdamW            embedding_weight_decay
    head        the language-model head, or the tied matrix    AdamW            embedding_weight_decay
    vectors     norm weights and biases                        AdamW            none

Muon wants maps between features. An embedding is a table of rows that are met one at a time, and the head its mirror
image, so both belong to AdamW; a norm weight pulled towards 0 would switch its feature off, so vectors never decay.

In: a model, an `OptimizerConfig`.  Out: `ParameterGroup`s.  Used by: model_optimizer.py.
Read next: model_optimizer.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import nn

from pellucid.model_config import ModelConfig
from pellucid.training_config import OptimizerConfig

Role = Literal["matrices", "fused", "embedding", "head", "vectors"]
FUSED = "attention.query_key_value.weight"


@dataclass(frozen=True, kw_only=True)
class ParameterGroup:
    """Parameters that are moved alike."""

    role: Role
    """What they are for."""
    algorithm: Literal["muon", "adamw"]
    """What moves them."""
    learning_rate: float
    """Their peak learning rate."""
    weight_decay: float
    """Their decoupled weight decay."""
    parameters: Mapping[str, nn.Parameter]
    """The parameters by name."""
    row_slices: tuple[int, ...] | None = None
    """Rows of the maps that lie above one another in each of these matrices, or None."""


def parameter_groups(model: nn.Module, config: OptimizerConfig) -> list[ParameterGroup]:
    """Sort the trainable parameters of a model into groups by role; empty groups are left out.

    Args:
        model: A `TransformerLM`, or any module: then what lies outside the named places counts as matrix or vector by
            its number of axes. Fused matrices are cut by `model.config`.
        config: Learning rates, decays (undecided: none) and the algorithm for matrices.

    Returns:
        Groups in a fixed order (that of the table above). A tied matrix appears once, as the head.

    Example:
        >>> class Tiny(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.lm_head = nn.Linear(4, 8)
        >>> [(group.role, list(group.parameters)) for group in parameter_groups(Tiny(), OptimizerConfig())]
        [('head', ['lm_head.weight']), ('vectors', ['lm_head.bias'])]
    """
    head = getattr(getattr(model, "lm_head", None), "weight", None)
    by_role: dict[Role, dict[str, nn.Parameter]] = {
        "matrices": {}, "fused": {}, "embedding": {}, "head": {}, "vectors": {}
    }  # fmt: skip
    for name, parameter in model.named_parameters():
        assert not name.startswith(("module.", "_orig_mod.")), "give the model itself, not its wrapper: names are roles"
        if parameter.requires_grad:
            by_role["head" if parameter is head else _role_of(name, parameter, model)][name] = parameter
    rates = {"embedding": config.embedding_learning_rate, "head": config.head_learning_rate}
    groups = []
    for role, parameters in by_role.items():
        in_a_block = role in ("matrices", "fused")
        if not parameters:
            continue
        groups.append(
            ParameterGroup(
                role=role,
                algorithm=config.matrix_algorithm if in_a_block else "adamw",
                learning_rate=(
                    config.matrix_learning_rate if in_a_block else rates.get(role, config.vector_learning_rate)
                ),
                weight_decay=_decay_of(role, config),
                parameters=parameters,
                row_slices=fused_slices(model.config, config.attention_slices) if role == "fused" else None,
            )
        )
    return groups


def fused_slices(config: ModelConfig, attention_slices: str) -> tuple[int, ...] | None:
    """Rows of the maps in the fused query, key and value matrix, in its own order: queries, keys, values.

    Args:
        config: The model's sizes.
        attention_slices: whole: None; parts: queries, keys, values; heads: every head of each.

    Example:
        >>> fused_slices(ModelConfig(d_model=64, num_heads=4, num_kv_heads=2), "parts")
        (64, 32, 32)
    """
    match attention_slices:
        case "whole":
            return None
        case "parts":
            keys = config.num_kv_heads * config.d_head
            return (config.num_heads * config.d_head, keys, keys)
    return (config.d_head,) * (config.num_heads + 2 * config.num_kv_heads)


def _role_of(name: str, parameter: nn.Parameter, model: nn.Module) -> Role:
    if name.startswith(("token_embedding.", "position_embedding.")):
        return "embedding"
    if parameter.ndim != 2:
        return "vectors"
    if name.endswith(FUSED) and len(parameter) == sum(fused_slices(model.config, "parts") or ()):
        return "fused"
    return "matrices"  # among them one of that name in an attention of somebody's own, cut otherwise


def _decay_of(role: Role, config: OptimizerConfig) -> float:
    match role:
        case "matrices" | "fused":
            return config.matrix_weight_decay or 0.0
        case "embedding" | "head":
            return config.embedding_weight_decay or 0.0
        case "vectors":
            return 0.0
