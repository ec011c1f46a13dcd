"""Of several processes that were given the same words, one says what is wrong with them.

In: LOCAL_RANK, as torchrun sets it.  Out: one sentence for each machine.  Used by: train.  Read next: train.py.
"""

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from pellucid.errors import UserError

LEAVE = (
    10.0  # seconds for whoever speaks: torchrun ends all, in mid-sentence, when the first has left, and this wait too
)


@contextmanager
def said_once(environment: Mapping[str, str] = os.environ) -> Generator[None]:
    """What all processes of a machine would say alike, its first one says; the others end as it does.

    Raises:
        SystemExit: in the place of a user's mistake, on the others.
    """
    if environment.get("LOCAL_RANK", "0") == "0":
        yield
        return
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            yield
    except UserError as error:
        time.sleep(LEAVE)
        raise SystemExit(2) from error
