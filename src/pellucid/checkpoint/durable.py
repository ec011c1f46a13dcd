"""Writing so that a power cut or a kill leaves the old or the new, never a mixture.

A file or folder is made under a temporary name, forced to the disk, and renamed; a rename is all or nothing. Then the
folder that holds the name is forced to the disk too, or the rename itself could be lost.

In: bytes and paths.  Out: files.  Used by: the other files of this room.  Read next: state_tree.py.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pellucid.disk import force_to_disk
from pellucid.errors import RunFolderError

TEMPORARY = ".unfinished-"
"""Prefix of names that are not yet, or no longer, what they are called; a folder's next owner removes them."""


def write_durably(path: Path, content: bytes) -> None:
    """Replace the file at `path` by `content`, all or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replacing(path: Path) -> Generator[Path, None, None]:
    """Give a temporary path to write a file at; on leaving, force it to disk and put it in the place of `path`.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with replacing(target) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    temporary = path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}")
    try:
        yield temporary
        force_to_disk(temporary)
        temporary.replace(path)
        force_to_disk(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def publish_folder(temporary: Path, path: Path) -> None:
    """Give a finished folder its name. What bore that name is moved aside first and then removed."""
    for file in sorted(temporary.rglob("*")):
        force_to_disk(file)
    force_to_disk(temporary)
    aside = path.with_name(f"{TEMPORARY}was-{path.name}")
    if path.exists():
        path.rename(aside)
    temporary.rename(path)
    force_to_disk(path.parent)
    shutil.rmtree(aside, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder so that no moment shows half of it under its name."""
    aside = path.with_name(f"{TEMPORARY}gone-{path.name}-{os.getpid()}")
    path.rename(aside)
    force_to_disk(path.parent)
    shutil.rmtree(aside)


def sweep(folder: Path) -> None:
    """Remove what a killed process left behind; a whole folder that was only moved aside gets its name back."""
    for leftover in sorted(folder.glob(f"{TEMPORARY}*")):
        name = leftover.name.removeprefix(f"{TEMPORARY}was-")
        if name != leftover.name and not (folder / name).exists():
            leftover.rename(folder / name)
        elif leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The file's SHA-256, in hexadecimal, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def in_a_sentence(path: Path) -> Generator[None, None, None]:
    """Say what the disk refused, and what to do, instead of an error number.

    Raises:
        RunFolderError: for a full disk, a read-only folder, a file in the way.
    """
    try:
        yield
    except OSError as error:
        remedies = {
            errno.ENOSPC: "free some space, or choose a folder on another disk",
            errno.EDQUOT: "free some space, or choose a folder on another disk",
            errno.EACCES: "choose a folder that you may write to",
            errno.EPERM: "choose a folder that you may write to",
            errno.EROFS: "choose a folder on a disk that is not read-only",
            errno.ENOTDIR: "choose another path: a file is in the way",
            errno.ENAMETOOLONG: "choose a shorter name",
        }
        came = f"{(error.strerror or str(error)).lower()} ({error.filename or path})"
        remedy = remedies.get(error.errno or 0, "look at the folder and the disk it is on")
        raise RunFolderError(f"to read and write '{path}'", came=came, remedy=remedy) from error
