"""Code that somebody wrote for a model, run for `pellucid train` as far as the flags name it or consent to it.

In: flags.  Out: classes that a model may then have.  Used by: train_run.py.  Read next: ../own_parts.py.
"""

from pathlib import Path

from pellucid import own_parts
from pellucid.checkpoint import read_config
from pellucid.cli.train_flags import TrainFlags, given


def run_own_code(flags: TrainFlags) -> None:
    """Run it, in each process of a run; whatever else the run needs is checked later.

    Raises:
        ConfigError: if the code fails.
        ModelFileError: if the run to go on with has not the code that it was made with.
    """
    own_parts.pinned(given(flags.model))
    for run in (flags.resume, flags.from_):
        if run is not None and flags.own_code and (Path(run) / "run.json").exists():
            own_parts.allow_kept(read_config(Path(run)), Path(run))
