"""Writing beside the place: until it is whole and proved, nothing bears the name it was asked for.

In: a path.  Out: a folder to write in, and later the name.  Used by: export.  Read next: export.py.
"""

import glob
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pellucid.checkpoint.durable import in_a_sentence
from pellucid.disk import force_to_disk
from pellucid.errors import ModelFileError

UNFINISHED = ".unfinished-"
"""How names begin of what is not yet what it is to be called."""


@contextmanager
def unfinished(out: Path) -> Generator[Path]:
    """A folder to write in, beside the path it is for; afterwards it is gone, and so are those of killed processes.

    Raises:
        ModelFileError: if something is at the path already.
        RunFolderError: if the disk refuses something, with what to do.
    """
    folder = out.with_name(f"{UNFINISHED}{os.getpid()}-{out.name}")
    try:
        with in_a_sentence(out):
            refuse_existing(out)
            out.parent.mkdir(parents=True, exist_ok=True)
            for left in out.parent.glob(f"{UNFINISHED}*-{glob.escape(out.name)}"):
                if not _is_alive(left.name.removeprefix(UNFINISHED).partition("-")[0]):
                    shutil.rmtree(left, ignore_errors=True)
            folder.mkdir()
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(made: Path, out: Path) -> None:
    """Give what was written its name, after it is safe on the disk."""
    for path in [*sorted(made.rglob("*")), made] if made.is_dir() else [made]:
        force_to_disk(path)
    refuse_existing(out)
    made.rename(out)
    force_to_disk(out.parent)


def refuse_existing(out: Path) -> None:
    """Say so if something is at a path already."""
    if os.path.lexists(out):
        kind = "a folder" if out.is_dir() else "a file"
        raise ModelFileError(
            f"nothing yet at '{out}'", came=f"{kind} that is there", remedy="remove it, or give another --out"
        )


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
