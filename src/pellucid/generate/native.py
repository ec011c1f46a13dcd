"""The C++ of this room, compiled when it is first needed and kept for the next time.

The file needs nothing but the language and OpenMP, so one call of the compiler makes it, in two or three seconds, for
the processor at hand. What is kept is named after the source, the compiler and the processor, so that neither a new
release nor a home that several machines share can bring the wrong one. Without a compiler there is none, and decoding
goes through the model's own forward pass.

In: nothing.  Out: a function, or None.  Used by: program.  Read next: program.py.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("decode_step.cpp")
FLAGS = (
    "-O3",
    "-march=native",
    "-std=c++17",
    "-fopenmp",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
)
COMPILERS = {"darwin": "clang++", "win32": "cl"}
"""The compiler's name where the variable CXX does not say; elsewhere g++."""
SWITCH = "PELLUCID_NATIVE"
"""Set to 0 in the environment, it leaves the compiled step out."""
_LONGEST_SECONDS = 120
"""For the compiler; 2 s are usual."""


def find_compiler() -> str | None:
    """The C++ compiler that torch.compile, too, would call for the CPU."""
    return shutil.which(os.environ.get("CXX") or COMPILERS.get(sys.platform, "g++"))


@cache
def native_library() -> ctypes.CDLL | None:
    """The compiled file, or None where it cannot be had: no compiler, nowhere to write, or switched off."""
    compiler = find_compiler()
    if compiler is None or os.environ.get(SWITCH) == "0" or sys.platform == "win32":
        return None
    path = _kept_in() / f"decode-step-{_identity(compiler)}.so"
    try:
        if not path.exists():
            _compile(compiler, path)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None


def _kept_in() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pellucid"


def _identity(compiler: str) -> str:
    """A name that changes with all that the compiled file depends on."""
    about = hashlib.sha256(SOURCE.read_bytes() + " ".join(FLAGS).encode() + platform.machine().encode())
    about.update(f"{compiler} {Path(compiler).resolve()} {os.path.getmtime(compiler)}".encode())
    processor = Path("/proc/cpuinfo")
    if processor.exists():
        lines = processor.read_text(encoding="utf-8", errors="replace").splitlines()
        about.update(next((line for line in lines if line.startswith(("flags", "Features"))), "").encode())
    return about.hexdigest()[:20]


def _compile(compiler: str, path: Path) -> None:
    """Compile into a temporary file and put it in place whole: two processes at once do not disturb each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="compiling-") as folder:
        made = Path(folder) / path.name
        command = [compiler, *FLAGS, "-shared", "-fPIC", "-o", str(made), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=_LONGEST_SECONDS, stdin=subprocess.DEVNULL)
        made.replace(path)
