"""series.json: which runs belong to a recipe's folder, in which order, and which of them left nothing but a sentence.

In: a folder.  Out: `SeriesFile`.  Used by: comparison, the command line.  Read next: comparison.py.
"""

from pathlib import Path

import msgspec

from pellucid.checkpoint.durable import in_a_sentence, write_durably
from pellucid.errors import RunFolderError

SERIES = "series.json"


class StoppedRun(msgspec.Struct, frozen=True):
    """A run whose numbers went bad."""

    fingerprint: str
    """Of what it was to do: another run of that name is another run."""
    sentence: str


class SeriesFile(msgspec.Struct):
    """The runs of a folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_series(folder, SeriesFile(runs=["a-seed-0"]))
        >>> read_series(folder).runs
        ['a-seed-0']
    """

    runs: list[str]
    """Names of folders, the variant that others are measured against first."""
    stopped: dict[str, StoppedRun] = {}


def read_series(folder: Path) -> SeriesFile | None:
    """What the folder says of its runs, if it is a recipe's.

    Raises:
        RunFolderError: if the file is there and cannot be read.
    """
    try:
        return msgspec.json.decode((folder / SERIES).read_bytes(), type=SeriesFile)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise RunFolderError(
            f"the runs of a recipe in '{folder / SERIES}'", came=str(error), remedy="restore the file, or remove it"
        ) from error


def write_series(folder: Path, series: SeriesFile) -> None:
    """Write the file, all or nothing; the folder is made if need be."""
    with in_a_sentence(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(folder / SERIES, msgspec.json.format(msgspec.json.encode(series)) + b"\n")
