"""What an import may pull in: --help must not wait for torch."""

import subprocess
import sys

import pytest

from tests.house.source_tree import PACKAGE

TORCH_FREE = ["", "errors", "shapes", "model_config", "training_config", "run_config", "text", "presets", "cli.main"]
ASK_FOR_HELP = """
sys.argv = ["pellucid", "--help"]
from pellucid.cli.main import run
try:
    run()
except SystemExit as end:
    assert not end.code, end.code
"""


def _module_exists(inside: str) -> bool:
    path = PACKAGE.joinpath(*inside.split(".")) if inside else PACKAGE
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def _loaded_after(code: str, *wanted: str) -> list[str]:
    """Which of these modules a fresh interpreter holds after it has run this code."""
    script = f"import sys\n{code}\nprint('LOADED', *sorted({set(wanted)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rpartition("LOADED")[2].split()


@pytest.mark.parametrize("inside", TORCH_FREE)
def test_it_imports_without_torch(inside):
    if not _module_exists(inside):
        pytest.skip(f"pellucid.{inside} is not there yet")
    module = f"pellucid.{inside}".rstrip(".")
    assert _loaded_after(f"import {module}", "torch") == [], f"{module} imports torch"


def test_help_is_answered_without_torch_and_without_tyro():
    if not _module_exists("cli.main"):
        pytest.skip("pellucid.cli is not there yet")
    assert _loaded_after(ASK_FOR_HELP, "torch", "tyro", "transformers", "matplotlib") == []


def test_no_test_library_is_imported_outside_tests():
    rooms = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists() and path.name != "cs336"]
    code = "\n".join(f"import pellucid.{room}" for room in sorted(rooms)) or "pass"
    assert _loaded_after(code, "beartype", "pytest", "hypothesis", "transformers") == []
