"""What a Hugging Face config.json says, as a `ModelConfig`; what cannot be said in ours is refused by name.

Every field is read, or known to change no logit (families.py), or refused. Where two fields say the same thing (theta
at the top and in rope_parameters, rope_parameters and the older rope_scaling), they must agree.

In: the parsed file.  Out: `ModelConfig` and the family.  Used by: huggingface.  Read next: huggingface.py.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_type_hints

from pellucid.convert.families import FAMILIES, NEUTRAL, WITHOUT_MEANING, Field, HuggingFaceFamily
from pellucid.errors import ConfigError, ModelFileError
from pellucid.model_config import MOST_LAYERS, ModelConfig, RopeScaling

REACH = {"full_attention": "global", "sliding_attention": "local"}
"""Kinds of layers by their names there."""

LLAMA3_FIELDS = {
    "factor": "factor",
    "low_freq_factor": "low_frequency_factor",
    "high_freq_factor": "high_frequency_factor",
    "original_max_position_embeddings": "original_context_length",
}
SCALING_FIELDS = {"default": {}, "linear": {"factor": "factor"}, "llama3": LLAMA3_FIELDS}
"""What each kind of rope scaling that we know is told by, theirs to ours."""


WITH_IMAGES = {
    "gemma3": {
        "model_type": "gemma3_text",
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131_072,
    }
}
"""Models that read images, too: what the part that reads text is, and what it has unless its text_config says other.
Source: transformers' Gemma3TextConfig; released files leave these out."""


def language_part(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config.json of the part that reads text, where a model reads images, too; else the same.

    Example:
        >>> language_part({"model_type": "gemma3", "text_config": {"num_hidden_layers": 2}})["num_hidden_layers"]
        2
    """
    absent, text = WITH_IMAGES.get(str(fields.get("model_type"))), fields.get("text_config")
    if absent is None or not isinstance(text, Mapping):
        return fields
    told = {"tie_word_embeddings": tied} if (tied := fields.get("tie_word_embeddings")) is not None else {}
    return {**absent, **text, **told}


class _Described:
    """The fields of a config.json, and which of them have been read."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields
        self.read: set[str] = set()

    def get(self, name: str, absent: Any = None) -> Any:
        """A field's value; `absent` if it is not there or null."""
        self.read.add(name)
        value = self.fields.get(name)
        return absent if value is None else value

    def number(self, name: str, absent: Any = None) -> Any:
        """The same for a number above 0."""
        value = self.get(name, absent)
        if value is not None:
            _require_number(name, value)
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """The same for fields within a field."""
        value = self.get(name, {})
        if not isinstance(value, Mapping):
            raise _cannot(name, value, "an object")
        return value

    def refuse_the_rest(self, family: HuggingFaceFamily) -> None:
        """Refuse what nobody has read, unless it says nothing."""
        for name, value in self.fields.items():
            says_nothing = value is None or value == {} or value == []
            if name in self.read or name in WITHOUT_MEANING or says_nothing:
                continue
            if name in NEUTRAL:
                if value != NEUTRAL[name]:
                    raise _cannot(name, value, f"no other value than {NEUTRAL[name]!r}")
                continue
            raise _cannot(name, value, f"fields of {family.weights.name} that are known here")


def family_of(fields: Mapping[str, Any]) -> HuggingFaceFamily:
    """The family that a config.json names.

    Raises:
        ModelFileError: if it is none that can be read, naming those that can.

    Example:
        >>> family_of({"model_type": "qwen3"}).architecture
        'Qwen3ForCausalLM'
    """
    model_type = fields.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise ModelFileError(
            f"a model_type among {', '.join(FAMILIES)} in config.json",
            came=f"{model_type!r}",
            remedy="choose a model of one of these families",
        )
    return FAMILIES[model_type]


def to_model_config(fields: Mapping[str, Any]) -> ModelConfig:
    """What a config.json describes, in our fields. Dropout, which only training uses, is left at 0.

    Raises:
        ModelFileError: naming the field that is missing, that nothing here can do, or that contradicts another.

    Example:
        >>> from pellucid.convert.names import LLAMA_SIZES
        >>> described = {"model_type": "llama", "rope_theta": 500000.0, **dict.fromkeys(LLAMA_SIZES.values(), 8)}
        >>> described["num_attention_heads"] = 2
        >>> to_model_config(described).rope_theta
        500000.0
    """
    family, described = family_of(fields), _Described(fields)
    ours: dict[str, Any] = {"dropout": 0.0}
    for our_name, their_name in family.sizes.items():
        ours[our_name] = described.get(their_name)
        _require_kind(our_name, their_name, ours[our_name])
    if ours["num_layers"] > MOST_LAYERS:  # lists as long are made before the config is
        raise _cannot(family.sizes["num_layers"], ours["num_layers"], f"at most {MOST_LAYERS:,} layers")
    for field in family.fields:
        ours |= _field(field, described)
    if family.preset().positions == "rope":
        ours |= _rope(described, family, ours["context_length"])
    ours |= _windows(described, family, ours["num_layers"])
    described.refuse_the_rest(family)
    try:
        return family.preset(**ours)
    except ConfigError as error:
        raise ModelFileError(f"{error.expected} in config.json", came=error.came, remedy=error.remedy) from error


def _field(field: Field, described: _Described) -> Mapping[str, Any]:
    value = described.get(field.theirs, field.absent)
    if field.words is not None and described.fields.get(field.theirs, value) is None and value is not None:
        raise _cannot(field.theirs, "null", f"one of {', '.join(map(repr, field.words))}")  # transformers fails, too
    if value is None:
        return {}
    if field.words is not None:
        if not isinstance(value, str | bool) or value not in field.words:
            raise _cannot(field.theirs, value, f"one of {', '.join(map(repr, field.words))}")
        return field.words[value]
    if field.read is not None:
        _require_number(field.theirs, value)
        return field.read(value)
    for our_name in field.ours:
        _require_kind(our_name, field.theirs, value)
    return dict.fromkeys(field.ours, value)


def _rope(described: _Described, family: HuggingFaceFamily, context_length: int) -> dict[str, Any]:
    """Theta and scaling, wherever they are told."""
    new, old = described.mapping("rope_parameters"), described.mapping("rope_scaling")
    by_layer = bool(REACH.keys() & new.keys())
    if by_layer and (unknown := sorted(new.keys() - REACH.keys())):
        raise _cannot(f"rope_parameters.{unknown[0]}", new[unknown[0]], "parameters for kinds of layers alone")
    if new and family.thetas_by_layer and not by_layer:
        raise _cannot("rope_parameters", dict(new), "parameters for each kind of layer")
    whole = _within("rope_parameters.full_attention", new.get("full_attention")) if by_layer else new
    local = _within("rope_parameters.sliding_attention", new.get("sliding_attention")) if by_layer else {}
    where = "rope_parameters.full_attention" if by_layer else "rope_parameters"

    preset = family.preset()
    thetas = {
        "rope_theta": described.number("rope_theta"),
        f"{where}.rope_theta": whole.get("rope_theta"),
        "rope_scaling.rope_theta": old.get("rope_theta"),
    }
    scalings = {where: _scaling(where, whole, context_length)}
    scalings["rope_scaling"] = _scaling("rope_scaling", old, context_length)
    scaling = _agreed(scalings)
    read = {"rope_theta": _theta(thetas, preset.rope_theta), "rope_scaling": _made(scaling)}
    local_thetas = {"rope_parameters.sliding_attention.rope_theta": local.get("rope_theta")}
    if family.thetas_by_layer:
        local_thetas["rope_local_base_freq"] = described.number("rope_local_base_freq")
    if by_layer or family.thetas_by_layer:
        absent = preset.rope_theta_local or read["rope_theta"]
        read["rope_theta_local"] = _theta(local_thetas, absent)
        if _made(_scaling("rope_parameters.sliding_attention", local, context_length)):
            raise _cannot("rope_parameters.sliding_attention.rope_type", dict(local), "local layers without scaling")
    return read


def _scaling(where: str, parameters: Mapping[str, Any], context_length: int) -> dict[str, Any] | None:
    """The scaling that some parameters tell, as fields of `RopeScaling`; None if they do not speak of it."""
    told = {name: value for name, value in parameters.items() if value is not None and name != "rope_theta"}
    part = told.pop("partial_rotary_factor", 1.0)
    if part != 1.0:
        raise _cannot(f"{where}.partial_rotary_factor", part, "no other value than 1.0")
    if not told:
        return None
    kinds = {name: told.pop(name) for name in ("rope_type", "type") if name in told}
    kind = _agreed({f"{where}.{name}": value for name, value in kinds.items()})
    if not isinstance(kind, str) or kind not in SCALING_FIELDS:
        raise _cannot(f"{where}.rope_type", kind, f"one of {', '.join(SCALING_FIELDS)}")
    names = SCALING_FIELDS[kind]
    if unknown := sorted(told.keys() - names.keys()):
        raise _cannot(f"{where}.{unknown[0]}", told[unknown[0]], f"nothing else beside rope_type {kind!r}")
    if kind == "llama3":
        told.setdefault("original_max_position_embeddings", context_length)
    if missing := [name for name in names if name not in told]:
        raise _cannot(f"{where}.{missing[0]}", None, "a number")
    for name, value in told.items():
        _require_number(f"{where}.{name}", value)
    return {"kind": kind, **{names[name]: value for name, value in told.items()}}


def _made(scaling: Mapping[str, Any] | None) -> RopeScaling | None:
    if scaling is None or scaling["kind"] == "default":
        return None
    try:
        return RopeScaling(**scaling)
    except ConfigError as error:
        raise ModelFileError(f"{error.expected} in config.json", came=error.came, remedy=error.remedy) from error


def _theta(told: Mapping[str, Any], absent: float) -> float:
    for name, value in told.items():
        if value is not None:
            _require_number(name, value)
    theta = _agreed(told)
    return float(absent if theta is None else theta)


def _windows(described: _Described, family: HuggingFaceFamily, num_layers: int) -> dict[str, Any]:
    """Which layers see how far."""
    window: int | None = None
    pattern: Sequence[str] = ["global"] * num_layers
    match family.windows:
        case "none":
            pass
        case "everywhere":  # here null is no window, and no field is a window
            window = described.number("sliding_window", None if "sliding_window" in described.fields else 4096)
            return {"window": window, "layer_pattern": ()}
        case "from a layer on":
            window = described.number("sliding_window", 4096)
            first = described.get("max_window_layers", 28)  # 4096, 28: transformers' own, as are those below
            window = window if described.get("use_sliding_window", False) is True else None
            if window is not None:
                _require_number("max_window_layers", first, least=0)
                pattern = ["local" if layer >= first else "global" for layer in range(num_layers)]
        case "all but one in some":
            window = described.number("sliding_window", 4096)
            period = described.number("sliding_window_pattern", described.number("_sliding_window_pattern", 6))
            pattern = ["local" if (layer + 1) % period else "global" for layer in range(num_layers)]
    pattern = _told_layers(described, num_layers) or pattern
    if "local" not in pattern:
        return {"window": None, "layer_pattern": ()}
    if window is None:
        raise _cannot("layer_types", "sliding_attention", "a sliding_window for layers that slide")
    return {"window": window, "layer_pattern": _shortest(pattern)}


def _told_layers(described: _Described, num_layers: int) -> list[str] | None:
    kinds = described.get("layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list) or len(kinds) != num_layers:
        raise _cannot("layer_types", kinds, f"a list of {num_layers} kinds")
    unknown = next((kind for kind in kinds if not isinstance(kind, str) or kind not in REACH), None)
    if unknown is not None:
        raise _cannot("layer_types", unknown, f"{' and '.join(REACH)} alone")
    return [REACH[kind] for kind in kinds]


def _shortest(pattern: Sequence[str]) -> tuple[str, ...]:
    """What repeats in a pattern; nothing if all layers are local."""
    if "global" not in pattern:
        return ()
    lengths = range(1, len(pattern) + 1)
    period = next(n for n in lengths if all(kind == pattern[i % n] for i, kind in enumerate(pattern)))
    return tuple(pattern[:period])


def _within(name: str, value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise _cannot(name, value, "an object")
    return value or {}


def _agreed(told: Mapping[str, Any]) -> Any:
    """The one value of fields that say the same thing; None if none speaks."""
    spoken = {name: value for name, value in told.items() if value is not None}
    values = list(spoken.values())
    if any(value != values[0] for value in values):
        raise ModelFileError(
            f"one value in config.json for {' and '.join(spoken)}",
            came=" and ".join(str(value) for value in values),
            remedy="find out which is right, and take the other out",
        )
    return values[0] if values else None


def _require_kind(our_name: str, their_name: str, value: Any) -> None:
    """Refuse what a field of ours cannot hold: text, a fraction where a whole number stands, a number for yes or no."""
    hint = get_type_hints(ModelConfig)[our_name]
    kinds = get_args(hint) or (hint,)
    if bool in kinds:
        if not isinstance(value, bool):
            raise _cannot(their_name, value, "true or false")
        return
    _require_number(their_name, value)
    if int in kinds and not isinstance(value, int):
        raise _cannot(their_name, value, "a whole number")


def _require_number(name: str, value: Any, least: float | None = None) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or (value < least if least is not None else value <= 0):
        raise _cannot(name, value, f"a number {'above 0' if least is None else f'from {least}'}")


def _cannot(name: str, value: Any, expected: str) -> ModelFileError:
    said = repr(value)
    said = said if len(said) <= 100 else said[:100] + "…"  # as much as a terminal's line or two
    return ModelFileError(
        f"{expected} in config.json",
        came=f"{name}={said}" if value is not None else f"no {name}",
        remedy="use another model, or, if you know that this changes nothing, take it out"
        if value is not None
        else "use the config.json that belongs to the weights",
    )
