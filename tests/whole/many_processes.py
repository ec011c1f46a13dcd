"""What several processes do for test_many_processes.py: the runs of `CASES`, one after the other, in one group.

    torchrun --nproc-per-node 2 many_processes.py FOLDER

In: a folder.  Out: a run folder for each case, and what the second rank saw.  Used by: test_many_processes.py.
Read next: test_many_processes.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pellucid.parallel import Ranks, joined_ranks
from pellucid.train import Request, StepDone, join, train
from tests.train.small_run import Heard, cut_short, small_request, stop_after
from tests.whole.fine_tuning_runs import CHATS, make_source, request

TIED = {"tie_embeddings": True}
CASES: dict[str, dict[str, Any]] = {
    "replicas": {},
    "shards": {"shard": True},
    "replicas, accumulating": {"micro_batch_size": 1},
    "shards, accumulating": {"micro_batch_size": 1, "shard": True},
    "replicas of a tied model": {"model": TIED},
    "shards of a tied model": {"model": TIED, "shard": True},
    "replicas, rows that do not divide": {"batch_size": 5},
    "shards, rows that do not divide": {"batch_size": 5, "shard": True, "micro_batch_size": 2},
    "one row for two": {"batch_size": 1},
    "shards with a mean of the weights": {"ema": 0.5, "shard": True},
    "replicas in bfloat16": {"precision": "bfloat16"},
    "shards in bfloat16": {"precision": "bfloat16", "shard": True},
    "shards that keep less": {"shard": True, "activation_checkpointing": True},
}
FROM_A_MODEL: dict[str, dict[str, Any]] = {
    "chats, some of whose rows have few answers": CHATS | {"batch_size": 4},
    "chats with factors": CHATS | {"batch_size": 3, "lora": 2},
    "factors and a mean of them": {"lora": 2, "ema": 0.5},
}
CASES |= FROM_A_MODEL
STOPPED = {"stopped replicas": {}, "stopped shards": {"shard": True}}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with joined_ranks() as ranks:
        for name, changes in {**CASES, **STOPPED}.items():
            heard = run_case(folder / name, changes, ranks, stopped=name in STOPPED)
            if not ranks.is_first:
                norms = [event.gradient_norm for event in heard.of(StepDone)]
                (folder / f"{name}.json").write_text(json.dumps(norms))


def run_case(out: Path, changes: dict[str, Any], ranks: Ranks, *, stopped: bool) -> Heard:
    watch, heard = stop_after(3) if stopped else lambda: False, Heard()
    with pytest.MonkeyPatch.context() as patch:
        cut_short(patch)
        if ranks.is_first:
            train(request_for(out, changes), heard, watch=watch, ranks=ranks)
        else:
            join(heard, ranks=ranks, watch=lambda: False)  # what the first wishes holds for all
    return heard


def request_for(out: Path, changes: dict[str, Any]) -> Request:
    """The run that a case asks for."""
    if changes not in FROM_A_MODEL.values():
        return small_request(out, **changes)
    return request(out, make_source(out.parent / "source"), **changes)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
