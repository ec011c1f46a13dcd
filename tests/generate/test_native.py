import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pellucid.generate.native import native_library

CODE = "from pellucid.generate.native import native_library; print(native_library() is not None)"


def ask(cache, **environment):
    command = [sys.executable, "-c", CODE]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), **environment}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.strip() == "True"


@pytest.mark.parametrize(
    "broken",
    [{"CXX": "/bin/false"}, {"CXX": "no-such-compiler"}, {"PELLUCID_NATIVE": "0"}, {"XDG_CACHE_HOME": "/proc/no"}],
)
def test_without_a_compiler_or_a_place_for_it_there_is_none_and_no_word_is_said(broken, tmp_path):
    assert not ask(tmp_path, **broken)
    assert not list(tmp_path.rglob("*.so"))


@pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")
def test_two_that_compile_at_once_leave_one_file_which_the_third_takes(tmp_path):
    with ThreadPoolExecutor() as pool:
        assert all(pool.map(lambda _: ask(tmp_path), range(2)))
    (made,) = tmp_path.rglob("*.so")
    (left,) = made.parent.iterdir()
    when = left.stat().st_mtime_ns
    assert ask(tmp_path)
    assert made.stat().st_mtime_ns == when


@pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")
def test_what_is_kept_and_damaged_is_left_aside(tmp_path):
    ask(tmp_path)
    (made,) = tmp_path.rglob("*.so")
    made.unlink()  # the file itself may be mapped by others
    made.write_bytes(b"no library")
    assert not ask(tmp_path)
