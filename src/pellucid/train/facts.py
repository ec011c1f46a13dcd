"""What run.json says of a run: everything that was decided, and everything that could make its numbers differ.

In: a request, a plan.  Out: a dictionary for run.json.  Used by: request, loop, run.  Read next: request.py.
"""

import os
import platform
import sys
from importlib.metadata import version
from typing import Any

import torch

from pellucid import __version__
from pellucid.data import ChatSources, PreparedText, Sources
from pellucid.text import TextTokenizer

MOST_LETTERS = 20_000  # of an alphabet that is written down; more are no alphabet
LIBRARIES = ("torch", "numpy", "tokenizers", "safetensors")


def environment(device: torch.device) -> dict[str, Any]:
    """The machine and the versions that compute the run."""
    return {
        "pellucid": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "system": f"{platform.system()} {platform.machine()}",
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor(),
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
        "float32_by_onednn": torch.get_float32_matmul_precision() == "medium",
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def of_sources(sources: Sources | PreparedText | ChatSources, name: str) -> dict[str, Any]:
    """The text, by its names, sizes and hash."""
    return {
        "name": name,
        "fingerprint": sources.fingerprint,
        "characters": sources.characters,
        "utf8_bytes": sources.utf8_bytes,
        "documents": len(sources.documents),
        "alphabet": sources.alphabet[:MOST_LETTERS],
    }


def of_tokenizer(tokenizer: TextTokenizer) -> dict[str, Any]:
    """The tokenizer, by what it is and its hash: another in its place is noticed."""
    return {"kind": tokenizer.kind, "vocab_size": tokenizer.vocab_size, "fingerprint": tokenizer.fingerprint}


def changed(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Say where two environments differ, if they do: a run that goes on is then not the same to the last digit.

    Example:
        >>> changed({"torch": "2.13.0", "cores": 2}, {"torch": "2.14.0", "cores": 2})
        'torch is 2.14.0 and was 2.13.0'
    """
    return ", ".join(
        f"{key} is {value} and was {there.get(key)}" for key, value in here.items() if there.get(key) != value
    )


def as_text(path: str | os.PathLike[str]) -> str:
    """A path as text that every file can hold: bytes in it that are no text are written out.

    Example:
        >>> as_text("caf\\udce9.txt"), as_text("café.txt")
        ('caf\\\\xe9.txt', 'café.txt')
    """
    return os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def command() -> list[str]:
    """The command line as it was given."""
    return ["pellucid", *map(as_text, sys.argv[1:])]
