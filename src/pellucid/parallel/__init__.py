"""Many processes that train one model together, each on its share of every batch.

Reading order: ranks, attempt, launch, replicate.

In: the environment that torchrun sets.  Out: `Ranks`; modules that synchronise their gradients.  Used by: train, the
command line.  Read next: ranks.py.
"""

from pellucid.parallel.launch import joined_ranks, launched, speaks_of_loss
from pellucid.parallel.ranks import ALONE, Ranks
from pellucid.parallel.replicate import is_sharded, replicated, shard, synchronised

__all__ = [
    "ALONE",
    "Ranks",
    "is_sharded",
    "joined_ranks",
    "launched",
    "replicated",
    "shard",
    "speaks_of_loss",
    "synchronised",
]
