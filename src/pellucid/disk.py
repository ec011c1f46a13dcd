"""What is on the disk and would survive a power cut, where the system's own word for it has an exception.

In: a path.  Out: nothing; the file is safe.  Used by: data, checkpoint.  Read next: model_config.py.
"""

import errno
import os
from pathlib import Path


def force_to_disk(path: Path) -> None:
    """Return when the file's bytes, or the folder's names, would survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync a folder; nothing more can be done there
            raise
    finally:
        os.close(descriptor)
