"""What this machine has, and whether it computes right: a row for each thing, with what follows from it.

The heart is a fixed small model whose logits are computed in every way this machine offers and compared with plain
float32 on the CPU: a device, a number type or a compiler that gives other numbers is found before it costs a run.

In: nothing.  Out: `Finding`s.  Used by: the command line.  Read next: train/device.py.
"""

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version

import torch
from torch import Tensor

from pellucid import presets
from pellucid.nn import TransformerLM, initialize
from pellucid.train.ceiling import Product
from pellucid.train.device import Capabilities
from pellucid.train.variant import autocast

LIBRARIES = ("torch", "numpy", "tokenizers", "safetensors")
LOGIT_BOUND = {"float32": 1e-3, "bfloat16": 0.1}  # of logits of size 1: seen 1e-6 and 0.02; a wrong sum gives 1


@dataclass(frozen=True)
class Finding:
    """One thing about this machine: what it is, its value, what follows, and whether it is as it should be."""

    name: str
    value: str
    meaning: str
    good: bool = True


def examine(*, compiled: bool = True) -> Iterator[Finding]:
    """Everything there is to say, cheap things first.

    Args:
        compiled: Whether to try torch.compile too, which takes seconds.
    """
    capabilities = Capabilities.of_this_machine()
    yield from _versions()
    yield from _resources(capabilities)
    yield from _speeds()
    yield from _numbers(capabilities, compiled=compiled)


def _versions() -> Iterator[Finding]:
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    yield Finding("versions", f"pellucid {version('pellucid')}, Python {platform.python_version()}, {libraries}", "")


def _resources(capabilities: Capabilities) -> Iterator[Finding]:
    cores, threads = os.cpu_count() or 1, torch.get_num_threads()
    yield Finding("cores", f"{cores}, of which torch uses {threads}", "--threads chooses")
    memory = _memory_bytes()
    if memory is not None:
        few = memory < 2 * 2**30  # torch alone takes a quarter of one
        yield Finding(
            "memory", f"{memory / 2**30:.0f} GiB", "little: choose small models" if few else "enough", not few
        )
    free = shutil.disk_usage(".").free
    tight = free < 2**30
    yield Finding("disk", f"{free / 2**30:.0f} GiB free here", "free some space" if tight else "enough", not tight)
    instructions = torch.backends.cpu.get_cpu_capability()
    narrow = torch.ops.mkldnn._is_mkldnn_bf16_supported() if torch.backends.mkldnn.is_available() else False
    meaning = "bfloat16 products in hardware" if narrow else "bfloat16 is emulated: float32 will be used"
    yield Finding("instructions", instructions, meaning)
    yield Finding("devices", ", ".join(capabilities.devices), f"train uses {capabilities.best_device}")
    found = capabilities.compiler
    meaning = "steps can be compiled" if found else "steps run eagerly, two thirds as fast; g++ would change it"
    yield Finding("compiler", found or "none", meaning)


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _speeds() -> Iterator[Finding]:
    rates = {kind: Product(kind).flop_per_second(budget=0.3) for kind in ("float32", "bfloat16")}
    ratio = rates["bfloat16"] / rates["float32"]
    for kind, rate in rates.items():
        meaning = f"{ratio:.1f} times float32" if kind == "bfloat16" else "the ceiling of a training step"
        yield Finding(f"products in {kind}", f"{rate / 1e9:,.0f} GFLOP/s", meaning)


def _numbers(capabilities: Capabilities, *, compiled: bool) -> Iterator[Finding]:
    config = presets.default(vocab_size=64, d_model=64, num_layers=2, num_heads=4, context_length=64)
    model = initialize(TransformerLM(config), "course", seed=0).eval()
    token_ids = torch.arange(128).reshape(2, 64) * 7 % 64  # 7 and 64 share no factor: every id comes
    expected = _logits(model, token_ids, "float32")
    ways: list[tuple[str, str, Callable[[], Tensor]]] = [
        ("cpu, bfloat16", "bfloat16", lambda: _logits(model, token_ids, "bfloat16"))
    ]
    if compiled and capabilities.compiler:
        program = torch.compile(model, dynamic=False)
        ways += [
            (f"cpu, {kind}, compiled", kind, lambda kind=kind: _logits(program, token_ids, kind))
            for kind in ("float32", "bfloat16")
        ]
    for device in capabilities.devices[1:]:
        ways.append((f"{device}, float32", "float32", lambda device=device: _on(device, model, token_ids)))
    for name, kind, way in ways:
        yield _compared(name, kind, way, expected)


@torch.no_grad()
def _logits(model: Callable[..., Tensor], token_ids: Tensor, precision: str) -> Tensor:
    with autocast(precision, token_ids.device):
        return model(token_ids).float().cpu()


def _on(device: str, model: TransformerLM, token_ids: Tensor) -> Tensor:
    try:
        return _logits(model.to(device), token_ids.to(device), "float32")
    finally:
        model.to("cpu")


def _compared(name: str, precision: str, way: Callable[[], Tensor], expected: Tensor) -> Finding:
    """How far this way's logits are from plain float32 on the CPU."""
    try:
        difference = float((way() - expected).abs().max())
    except Exception as error:  # whatever a compiler or a driver raises is a finding
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Finding(f"logits on {name}", "none", f"it failed: {lines[0][:100]}", good=False)
    good = difference <= LOGIT_BOUND[precision]
    meaning = "right" if good else f"wrong: at most {LOGIT_BOUND[precision]} is rounding; do not use it"
    return Finding(f"logits on {name}", f"{difference:.1e} from float32", meaning, good)
