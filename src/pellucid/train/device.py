"""What a device may compute in: the one table of device and number type, and where the answer is looked up.

               float32   bfloat16                       float16
    cpu        yes       yes; the trial asks whether    no: in training it needs loss scaling, and attention scores
                         it is faster                   overflow past 65,504; bfloat16 has float32's range
    cuda       yes       from compute capability 8.0    no, as above
    mps        yes       not used: its sums differ      no, as above
                         between releases of the system

In: what a machine can do.  Out: the number types to train in, the likely fastest first, or a sentence.
Used by: trial, bench, doctor.  Read next: trial.py.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from pellucid.errors import ConfigError
from pellucid.generate.native import find_compiler

DeviceKind = Literal["cpu", "cuda", "mps"]
NO_FLOAT16 = "float16 needs loss scaling, which is not built in, and attention scores overflow it past 65,504"
"""Why float16 is refused on every device."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a machine can do, as far as training asks.

    Example:
        >>> Capabilities(cuda=True).best_device
        'cuda'
    """

    cuda: bool = False
    cuda_bfloat16: bool = False
    """In hardware: emulated, it is slower than float32."""
    mps: bool = False
    compiler: str | None = None
    """The C++ compiler that torch.compile would use for the CPU."""

    @classmethod
    def of_this_machine(cls) -> "Capabilities":
        """Look."""
        cuda = torch.cuda.is_available()
        return cls(
            cuda=cuda,
            cuda_bfloat16=cuda and torch.cuda.is_bf16_supported(including_emulation=False),
            mps=torch.backends.mps.is_available(),
            compiler=find_compiler(),
        )

    @property
    def devices(self) -> tuple[DeviceKind, ...]:
        """Every kind of device there is, the CPU first."""
        return ("cpu", *(("cuda",) if self.cuda else ()), *(("mps",) if self.mps else ()))

    @property
    def best_device(self) -> DeviceKind:
        """Where training is fastest without a doubt about its numbers; mps has to be asked for."""
        return "cuda" if self.cuda else "cpu"


def check_device(device: str, capabilities: Capabilities) -> DeviceKind:
    """The device that somebody asked for, or the best one for "auto".

    Raises:
        ConfigError: if this machine has none, or this torch cannot use it.
    """
    if device == "auto":
        return capabilities.best_device
    for kind in capabilities.devices:
        if kind == device:
            return kind
    raise ConfigError(
        f"a device that torch finds here ({' or '.join(capabilities.devices)})",
        came=repr(device),
        remedy="choose one of these, or install the torch that is built for it",
    )


def training_precisions(device: str, capabilities: Capabilities) -> tuple[str, ...]:
    """Number types that a model may be trained in on a device, the likely fastest first.

    Example:
        >>> training_precisions("cpu", Capabilities())
        ('bfloat16', 'float32')
    """
    narrow = {"cpu": True, "cuda": capabilities.cuda_bfloat16, "mps": False}[device]
    return ("bfloat16", "float32") if narrow else ("float32",)


def check_precision(device: str, precision: str, capabilities: Capabilities) -> str:
    """A precision that somebody asked for, if the device can train in it.

    Raises:
        ConfigError: naming the reason, if it cannot.
    """
    possible = training_precisions(device, capabilities)
    if precision in possible:
        return precision
    reason = {"float16": NO_FLOAT16, "bfloat16": f"no bfloat16 in the hardware of this {device} device"}.get(precision)
    raise ConfigError(
        f"{' or '.join(reversed(possible))} on {device}",
        came=f"{precision} ({reason})" if reason else repr(precision),
        remedy=f"train in {possible[0]}",
    )
