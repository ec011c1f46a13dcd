"""What this machine has, what follows from it, and whether it computes right.

Every finding says what is there and what that means for training. The last ones compute: a small fixed model's logits
on each device, in each number type, eager and compiled, beside those of the CPU in float32. A device whose numbers are
off makes a model that is worse than it looks, and nothing else would tell.

In: this machine.  Out: `Finding`s.  Used by: the command line.  Read next: cli/doctor.py.
"""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid import __version__, presets
from pellucid.float32 import fast_float32
from pellucid.nn import TransformerLM, initialize
from pellucid.train.ceiling import Product
from pellucid.train.device import Capabilities, training_precisions
from pellucid.train.machine import reproducible
from pellucid.train.variant import autocast

State = Literal["right", "note", "wrong"]

LIBRARIES = ("torch", "numpy", "tokenizers", "safetensors")
OLDEST_TORCH = (2, 13)  # the oldest that has all we use (pyproject.toml)
MEMORY_BYTES = 2e9  # torch takes 0.3, a default run 1.5 (docs/log.md)
DISK_BYTES = 1e9  # checkpoints of a default run take 0.1; a text file's tokens about as much as the text
LOGIT_BOUND = {"float32": 1e-4, "bfloat16": 5e-2}  # of the largest logit; seen on CPUs: 1e-6, 8e-3
COMPILED = " compiled"
BUSY = 0.5  # running programs per core, beside this one, from which measurements say little


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    said: str
    """What is there."""
    so_what: str
    """What that means, or what to do."""
    state: State = "right"
    """right; note: works, but could be better; wrong: does not work, or not as it should."""
    figures: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For a machine to read."""
        return asdict(self)


def examine(folder: Path, *, quick: bool = False) -> Iterator[Finding]:
    """Everything, in the order in which it takes longer.

    Args:
        folder: Where runs would be written.
        quick: Leave out what is measured or compiled.
    """
    capabilities = Capabilities.of_this_machine()
    yield versions()
    yield cores()
    yield memory()
    yield disk(folder)
    yield devices(capabilities)
    yield instructions(torch.backends.cpu.get_cpu_capability())
    yield compiler(capabilities)
    with reproducible(None, onednn=None):
        if not quick:
            yield ceilings()
        yield from logits(capabilities, compiled=capabilities.compiler is not None and not quick)


def versions() -> Finding:
    """What is installed."""
    found = {name: _version(name) for name in LIBRARIES}
    said = ", ".join(f"{name} {number}" for name, number in found.items())
    number = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    old = number < OLDEST_TORCH
    return Finding(
        topic="versions",
        said=f"pellucid {__version__}, Python {platform.python_version()}, {said}",
        so_what=f"torch has to be {'.'.join(map(str, OLDEST_TORCH))} or newer: install it" if old else "what is needed",
        state="wrong" if old else "right",
        figures={"pellucid": __version__, "python": platform.python_version(), **found},
    )


def cores() -> Finding:
    """Cores this process may use, threads torch will use, and what else is running."""
    count, threads = _usable_cores(), torch.get_num_threads()
    busy = _load_average() / count
    if threads > count:
        state, so_what = "wrong", f"threads wait for each other: set OMP_NUM_THREADS={count}, or --threads {count}"
    elif busy > BUSY:
        state, so_what = "note", f"other programs keep them {busy:.0%} busy: what is timed now says little"
    else:
        state, so_what = "right", "a step is shared between them"
    return Finding(
        topic="cores",
        said=f"{count} cores, {threads} threads",
        so_what=so_what,
        state=state,
        figures={"cores": count, "threads": threads, "busy": busy},
    )


def memory() -> Finding:
    """Memory that is free."""
    total, free = memory_bytes()
    if total is None or free is None:
        return Finding(topic="memory", said="not told by this system", so_what="a default run takes 1.5 GB")
    low = free < MEMORY_BYTES
    return Finding(
        topic="memory",
        said=f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free",
        so_what="close programs, or train with a smaller --micro-batch-size" if low else "a default run takes 1.5 GB",
        state="note" if low else "right",
        figures={"total_bytes": total, "free_bytes": free},
    )


def disk(folder: Path) -> Finding:
    """Disk space where runs would be written."""
    free = shutil.disk_usage(folder).free
    low, writable = free < DISK_BYTES, os.access(folder, os.W_OK)
    so_what = "a default run takes 0.1 GB and the text's size"
    if not writable:
        so_what = "nothing can be written here: choose --out somewhere else"
    elif low:
        so_what = "make room: a run that cannot save stops"
    return Finding(
        topic="disk",
        said=f"{free / 1e9:.1f} GB free here",
        so_what=so_what,
        state="wrong" if not writable else "note" if low else "right",
        figures={"free_bytes": free, "writable": writable},
    )


def devices(capabilities: Capabilities) -> Finding:
    """Devices, and what each trains in."""
    names = {"cpu": platform.machine(), "cuda": "", "mps": "Apple"}
    if capabilities.cuda:
        names["cuda"] = torch.cuda.get_device_name()
    table = {device: training_precisions(device, capabilities) for device in capabilities.devices}
    listed = [f"{kind} ({names[kind]})".replace(" ()", "") for kind in table]
    ways = "; ".join(f"{kind}: {' or '.join(precisions)}" for kind, precisions in table.items())
    return Finding(
        topic="devices",
        said=", ".join(listed),
        so_what=f"trains on {capabilities.best_device} ({ways}; float16 nowhere)",
        figures={"devices": {kind: list(precisions) for kind, precisions in table.items()}},
    )


def instructions(capability: str) -> Finding:
    """Instructions for many numbers at once, those for bfloat16 among them."""
    units = {
        "AMX": getattr(torch.cpu, "_is_amx_tile_supported", bool)(),
        "bfloat16": getattr(torch.cpu, "_is_avx512_bf16_supported", bool)(),
    }
    listed = [capability, *(f"{name} units" for name, there in units.items() if there)]
    narrow = any(units.values())
    return Finding(
        topic="instructions",
        said=", ".join(listed),
        so_what="bfloat16 products in hardware" if narrow else "bfloat16 is emulated: float32 will be chosen",
        state="right" if capability != "DEFAULT" else "note",
        figures={"capability": capability, **units},
    )


def compiler(capabilities: Capabilities) -> Finding:
    """The compiler that torch.compile calls."""
    there = capabilities.compiler is not None
    return Finding(
        topic="compiler",
        said=capabilities.compiler or "none found",
        so_what="steps can be compiled, if a run is long enough"
        if there
        else "steps run eagerly, about half as fast; installing g++ helps",
        state="right" if there else "note",
        figures={"path": capabilities.compiler},
    )


def ceilings() -> Finding:
    """How fast large matrices are multiplied, in each number type."""
    rates = {precision: Product(precision).flop_per_second() for precision in ("float32", "bfloat16")}
    gain = rates["bfloat16"] / rates["float32"]
    by = "oneDNN" if torch.get_float32_matmul_precision() == "medium" else "torch's own choice"
    return Finding(
        topic="products",
        said=", ".join(f"{kind} {rate / 1e9:,.0f}" for kind, rate in rates.items()) + " GFLOP/s",
        so_what=f"no step is faster; bfloat16 gains {gain:.1f} times; float32 by {by}",
        figures={"float32": rates["float32"], "bfloat16": rates["bfloat16"], "float32_by": by},
    )


def logits(capabilities: Capabilities, *, compiled: bool) -> Iterator[Finding]:
    """The small model's logits by every way there is here, beside those of the CPU in plain float32."""
    model, ids = small_model()
    with fast_float32(onednn=False):
        expected = model(ids)
    for device in capabilities.devices:
        for precision in reversed(training_precisions(device, capabilities)):
            for is_compiled in (False, True) if compiled else (False,):
                name = f"{device} {precision}" + (COMPILED if is_compiled else "")
                yield judge(name, precision, partial(_logits_by, device, precision, is_compiled), expected)


def judge(name: str, precision: str, compute: Callable[[], Tensor], expected: Tensor) -> Finding:
    """Compare what `compute` gives, and say what a difference means.

    Example:
        >>> exact = torch.tensor([1.0, 2.0])
        >>> judge("cpu", "float32", lambda: exact + 0.5, exact).state
        'wrong'
    """
    try:
        found = compute().float().cpu()
    except Exception as error:  # whatever a device or a compiler raises is what there is to say
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:100]
        optional = name.endswith(COMPILED)
        so_what = "train will not use it" if optional else "do not train there"
        return Finding(topic=name, said=f"fails: {reason}", so_what=so_what, state="note" if optional else "wrong")
    difference = float((found - expected).abs().max() / expected.abs().max())
    right = difference <= LOGIT_BOUND[precision]
    return Finding(
        topic=name,
        said=f"logits differ by {difference:.1e} of the largest" if difference else "the very same logits",
        so_what="computes right" if right else f"wrong: {LOGIT_BOUND[precision]:.0e} is the bound; do not train there",
        state="right" if right else "wrong",
        figures={"difference": difference, "bound": LOGIT_BOUND[precision]},
    )


def small_model() -> tuple[TransformerLM, Tensor]:
    """A fixed model of the default shape, with weights that are not small, and ids for it; nothing is trained."""
    sizes = {"vocab_size": 64, "d_model": 64, "num_layers": 2, "num_heads": 4, "context_length": 32}
    model = initialize(TransformerLM(presets.default(**sizes)), "course", seed=0).eval().requires_grad_(False)
    return model, torch.randint(64, (2, 32), generator=torch.Generator().manual_seed(0))


def _logits_by(device: str, precision: str, is_compiled: bool) -> Tensor:
    model, ids = small_model()
    model.to(device).use_fused_attention(not is_compiled)  # both paths of attention have their turn
    compute = torch.compile(model, dynamic=False) if is_compiled else model
    with autocast(precision, torch.device(device)):
        return compute(ids.to(device))


def memory_bytes() -> tuple[float | None, float | None]:
    """Memory of the machine, and what programs may still have of it; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        sizes = {line.partition(":")[0]: 1024 * float(line.split()[1]) for line in lines if len(line.split()) > 1}
        return sizes.get("MemTotal"), sizes.get("MemAvailable")
    except OSError:
        pass
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None, None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform.startswith("linux") else os.cpu_count() or 1


def _load_average() -> float:
    """Programs running, as a mean over the last minute; 0 where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
