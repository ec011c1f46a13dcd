"""What a process is told before torch is there; a person's own settings are kept."""

import os
import subprocess
import sys

import pytest

from pellucid.cli.process import SPINS, keep_freed_memory, settle, wait_briefly


@pytest.mark.parametrize("own", [{"OMP_WAIT_POLICY": "PASSIVE"}, {"GOMP_SPINCOUNT": "0"}, {"KMP_BLOCKTIME": "1"}])
def test_a_policy_that_somebody_has_set_is_kept(own):
    environment = dict(own)
    wait_briefly(environment)
    assert environment == own


def test_threads_are_told_before_the_library_that_reads_it_is_loaded():
    program = (
        "import os, sys, pellucid.cli.main as main\n"
        "say = lambda name: sys.exit('torch' in sys.modules or os.environ['GOMP_SPINCOUNT'])\n"
        "main.importlib.import_module = say\n"
        "main._run_verb(['train'])"
    )
    environment = {name: value for name, value in os.environ.items() if name not in SPINS}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.stderr.strip() == SPINS["GOMP_SPINCOUNT"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone is told")
def test_freed_memory_is_kept_so_that_the_next_step_meets_no_new_pages():
    program = (
        "import ctypes, resource, sys\n"
        "from pellucid.cli.process import keep_freed_memory\n"
        "print(keep_freed_memory({}))\n"
        "libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.free.argtypes = [ctypes.c_void_p]\n"
        "def step():\n"
        "    pieces = [libc.malloc(1 << 26) for _ in range(3)]\n"
        "    for piece in pieces: ctypes.memset(piece, 1, 1 << 26)\n"
        "    for piece in pieces: libc.free(piece)\n"
        "step(); before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "step(); print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    kept, faults = done.stdout.split()
    if kept == "False":
        pytest.skip("another C library")
    assert int(faults) < 100  # of the 49,152 pages that three pieces of 64 MB have


@pytest.mark.parametrize("name", ["MALLOC_MMAP_MAX_", "GLIBC_TUNABLES"])
def test_an_allocator_that_somebody_has_set_is_left_alone(name):
    assert not keep_freed_memory({name: "1"})


def test_another_system_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory({})


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory({})


def test_both_are_settled(monkeypatch):
    told = []
    monkeypatch.setattr("pellucid.cli.process.keep_freed_memory", told.append)
    environment = {"HOME": "/"}
    settle(environment)
    assert environment == {"HOME": "/", **SPINS}
    assert told == [environment]
