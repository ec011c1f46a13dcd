"""A `ModelConfig` as a Hugging Face config.json: the tables of families.py read the other way.

A model is of the first family whose config.json, read again, means the same model. What none can say has a name: the
fields that the nearest family has otherwise.

In: a `ModelConfig`.  Out: a family and the fields of its config.json, or why there is none.  Used by: reach,
huggingface_writing.  Read next: huggingface_writing.py.
"""

from collections.abc import Mapping
from typing import Any

from pellucid.convert.families import FAMILIES, Field, HuggingFaceFamily
from pellucid.convert.huggingface_config import REACH, SCALING_FIELDS, to_model_config
from pellucid.convert.meaning import differences
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig

_KINDS = {ours: theirs for theirs, ours in REACH.items()}


def describe(config: ModelConfig) -> tuple[HuggingFaceFamily, dict[str, Any]]:
    """The family that can be this model, and what its config.json says.

    Both spellings of theta are written, the one at the top, which older readers know, and rope_parameters.

    Raises:
        ModelFileError: naming the fields that no family has.

    Example:
        >>> family, fields = describe(ModelConfig(qk_norm="head", rope_theta=500000.0))
        >>> family.model_type, fields["rope_theta"], fields["rope_parameters"]["rope_theta"]
        ('qwen3', 500000.0, 500000.0)
    """
    nearest: tuple[HuggingFaceFamily, Mapping[str, Any]] | None = None
    for family in FAMILIES.values():
        fields = _fields(config, family)
        try:
            apart = differences(config, to_model_config(fields))
        except ModelFileError:
            continue
        if not apart:
            return family, fields
        if nearest is None or len(apart) < len(nearest[1]):
            nearest = family, apart
    assert nearest is not None  # sizes alone make a model of any family
    came = in_words(config, nearest[0].name, nearest[1])
    raise ModelFileError("a model that a family of Hugging Face's has", came=came, remedy=REMEDY)


REMEDY = "use pellucid's own folder, or train a model of the default shape"


def in_words(config: ModelConfig, name: str, apart: Mapping[str, tuple[Any, Any]]) -> str:
    """What keeps a model from being one of a family.

    Example:
        >>> in_words(ModelConfig(logit_soft_cap=30.0), "Llama", {"logit_soft_cap": (30.0, None)})
        'logit_soft_cap=30.0 (Llama, the nearest, has none)'
    """
    if config.own_parts:
        named = ", ".join(f"{field} of your own ({part.partition('@')[0]})" for field, part in config.own_parts.items())
        return f"{named}, which no other runtime has"
    ours = " and ".join(f"{field}={_said(value)}" for field, (value, _) in apart.items())
    return f"{ours} ({name}, the nearest, has {' and '.join(_said(value) for _, value in apart.values())})"


def _said(value: Any) -> str:
    match value:
        case None:
            return "none"
        case True:
            return "yes"
        case False:
            return "no"
        case tuple():
            return "-".join(value) or "one kind of layer"
        case _:
            return str(getattr(value, "kind", value))


def _fields(config: ModelConfig, family: HuggingFaceFamily) -> dict[str, Any]:
    """The fields as well as this family can say them; what it cannot is left out, and will be missed."""
    fields: dict[str, Any] = {"architectures": [family.architecture], "model_type": family.model_type}
    fields |= {theirs: getattr(config, ours) for ours, theirs in family.sizes.items()}
    for field in family.fields:
        value = _value(config, field)
        if value is not None:
            fields[field.theirs] = value
    if family.preset().positions == "rope":
        fields |= _rope(config, family)
    return fields | _windows(config, family)


def _value(config: ModelConfig, field: Field) -> Any:
    if field.words is not None:
        fitting = [
            word
            for word, says in field.words.items()
            if all(getattr(config, name) == value for name, value in says.items())
        ]
        return field.absent if field.absent in fitting else next(iter(fitting), None)
    if field.write is not None:
        number = field.write(config)
        return round(number) if abs(number - round(number)) < 1e-9 * abs(number) else number  # 1e-9: rounding alone
    return getattr(config, field.ours[0])


def _rope(config: ModelConfig, family: HuggingFaceFamily) -> dict[str, Any]:
    theta, scaling = float(config.rope_theta), config.rope_scaling
    told: dict[str, Any] = {"rope_type": "default"}
    if scaling is not None:
        names = SCALING_FIELDS[scaling.kind]
        told = {"rope_type": scaling.kind, **{theirs: getattr(scaling, ours) for theirs, ours in names.items()}}
    fields: dict[str, Any] = {"rope_theta": theta} | ({"rope_scaling": told} if scaling else {})
    if not family.thetas_by_layer:
        return fields | {"rope_parameters": {**told, "rope_theta": theta}}
    local = float(config.rope_theta_local or config.rope_theta)
    by_layer = {
        "full_attention": {**told, "rope_theta": theta},
        "sliding_attention": {"rope_type": "default", "rope_theta": local},
    }
    return fields | {"rope_local_base_freq": local, "rope_parameters": by_layer}


def _windows(config: ModelConfig, family: HuggingFaceFamily) -> dict[str, Any]:
    if family.windows == "none":
        return {}
    if family.windows == "everywhere":
        return {"sliding_window": config.window}
    are_local = [config.layer_is_local(layer) for layer in range(config.num_layers)]
    kinds = [_KINDS["local" if is_local else "global"] for is_local in are_local]
    fields: dict[str, Any] = {"sliding_window": config.window, "layer_types": kinds}
    if family.windows == "from a layer on":
        first = are_local.index(True) if True in are_local else config.num_layers
        return fields | {"use_sliding_window": any(are_local), "max_window_layers": first}
    return fields
