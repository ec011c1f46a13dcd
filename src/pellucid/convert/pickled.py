"""Checkpoints in torch's own format, which is a pickle: data is taken from them, code never.

Ours are safetensors and JSON (checkpoint/); these are other people's.

In: a path or an open binary file.  Out: tensors, numbers and text in lists and dicts.  Used by: cs336.
Read next: names.py.
"""

import io
import os
from typing import IO, Any, cast

import torch

from pellucid.errors import ModelFileError


def read_pickled(src: str | os.PathLike[str] | IO[bytes] | io.IOBase) -> Any:
    """Read a file that `torch.save` wrote, with everything on the CPU.

    Args:
        src: A path, or a binary file opened for reading.

    Raises:
        ModelFileError: a file that holds more than tensors, numbers and text (unpickling that would run code), or that
            is no such file at all.
        OSError: no such file, or none that may be read.
    """
    try:
        return torch.load(cast(IO[bytes], src), map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # each damage has an exception of its own: unpickling, zip, end of file, key
        raise ModelFileError(
            "a file of tensors, numbers and text that torch.save wrote",
            came="one that holds code, or another kind of file",
            remedy="export the weights as safetensors where they were made",
        ) from error
