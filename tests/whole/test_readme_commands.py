"""Every command of the README, typed by a newcomer."""

import os
import subprocess
import sys
from pathlib import Path

from tests.house.test_readme import README, commands


def test_every_command_of_the_readme_runs_in_order_in_an_empty_folder(tmp_path):
    """The newcomer's path. `make` lines are about a clone: that they exist is tested above, CI runs them."""
    folder, home = tmp_path / "empty folder", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PELLUCID", "PYTHON", "VIRTUAL"))
    }
    environment |= {"HOME": str(home), "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    for command in commands(README):
        if command.startswith(("make ", "git ", "cd ")):
            continue
        words = ["bash", "-c", command]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=1200)
        said = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert done.returncode == 0, f"{command}\nended with {done.returncode}\n{said}"
