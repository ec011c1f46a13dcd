"""One attempt: how processes tell those that were started with them from those of an earlier attempt.

torchrun restarts its processes when one is lost, and keeps the store in which they leave their addresses: whoever is
quick finds the address of a process that is gone. So the first process makes up a word, and gives it to each of the
others in answer to a word of that one's own, which nobody before it can have known. What is stored under the first
one's word is of this attempt.

    another  ──  hello/RANK = its word          ─▶ first
    another  ◀─  word/ITS WORD = first's word   ──  first
    another  ──  heard/FIRST'S WORD/RANK        ─▶ first, who then knows that it has spoken with the living

In: a store that may be used.  Out: the same, as if it were new.  Used by: launch.  Read next: launch.py.
"""

import time
import uuid

import torch.distributed as dist

PAUSE = 0.02  # seconds between two looks into the store
PATIENCE = 600.0  # seconds until the others must have come: on a cluster, imports from a cold file system take minutes


def of_this_attempt(store: dist.Store, rank: int, count: int, patience: float = PATIENCE) -> dist.Store:
    """The part of a store that only the processes use which are here now.

    Args:
        store: Where all of them, and those before them, write.
        rank: Which this is.
        count: How many there are.
        patience: Seconds until the others must have come.

    Raises:
        RuntimeError: if they have not.
    """
    mine = uuid.uuid4().hex
    word = _answer_all(store, mine, set(range(1, count)), patience) if rank == 0 else _ask(store, mine, rank)
    return dist.PrefixStore(f"pellucid/attempt/{word}", store)


def _ask(store: dist.Store, mine: str, rank: int) -> str:
    store.set(f"pellucid/hello/{rank}", mine)
    word = store.get(f"pellucid/word/{mine}").decode()  # waits until it is there
    store.set(f"pellucid/heard/{word}/{rank}", "")
    return word


def _answer_all(store: dist.Store, mine: str, awaited: set[int], patience: float) -> str:
    answered: dict[int, bytes] = {}
    until = time.monotonic() + patience
    while awaited := {rank for rank in awaited if not store.check([f"pellucid/heard/{mine}/{rank}"])}:
        if time.monotonic() > until:
            raise RuntimeError(f"Timed out: {len(awaited)} processes have not come")
        for rank in awaited:
            if store.check([f"pellucid/hello/{rank}"]):
                hello = store.get(f"pellucid/hello/{rank}")
                if answered.get(rank) != hello:  # the first may be a dead one's
                    store.set(f"pellucid/word/{hello.decode()}", mine)
                    answered[rank] = hello
        time.sleep(PAUSE)
    return mine
