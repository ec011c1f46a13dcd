"""What a model's weights are held in while it is used, and what this machine can do with it.

    auto       as they are stored; bfloat16 becomes float32 where the machine does not compute in it
    float32    four bytes a weight
    bfloat16   two
    int8       one: matrices in eight bits (int8.py), everything else in float32

In: a model, the name of a precision.  Out: the model, ready.  Used by: loading, bench.
Read next: ../generate/program.py.
"""

import torch

from pellucid.errors import ConfigError
from pellucid.generation_config import PRECISIONS
from pellucid.nn import TransformerLM
from pellucid.quantize.int8 import quantize_model


def computes_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and any(
        bool(getattr(torch.cpu, name, bool)()) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )


def require_precision(precision: str) -> None:
    """Refuse a precision that there is not.

    Raises:
        ConfigError: naming those there are.
    """
    if precision not in PRECISIONS:
        expected = f"a precision: {', '.join(PRECISIONS)}"
        raise ConfigError(expected, came=repr(precision), remedy="choose one of these")


def with_precision(model: TransformerLM, precision: str) -> tuple[TransformerLM, tuple[str, ...]]:
    """The model in a precision, and what is to be said, if it is another than its weights are stored in.

    Args:
        model: On the device where it will be used; it is changed.
        precision: One of `PRECISIONS`.

    Raises:
        ConfigError: if there is no such precision.
    """
    require_precision(precision)
    first = next(model.parameters())
    fast = computes_bfloat16(first.device)
    if precision == "auto":
        if first.dtype != torch.bfloat16 or fast:
            return model, ()
        told = "The weights are bfloat16, which this machine does not compute in: they are widened to float32."
        return model.float(), (told,)
    if precision == "int8":
        return quantize_model(model.float(), torch.bfloat16 if fast else torch.float32), ()
    return model.to(getattr(torch, precision)), ()
