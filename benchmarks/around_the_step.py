"""What stands around a training step, and what cutting it costs: the loop, saving, accumulation, two processes.

    python benchmarks/around_the_step.py loop         what is around a small step: data, events, metrics
    python benchmarks/around_the_step.py saving       the default recipe: share of its time, longest stall
    python benchmarks/around_the_step.py memory       peak memory of 8 micro-batches against 2
    python benchmarks/around_the_step.py processes    2 x DDP with one thread each against one process with two threads

Everything is a ratio within one run of this file; run it where nothing else runs.

In: a quiet machine.  Out: lines with ratios.  Used by: people (docs/log.md).
"""

import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from pellucid.data import builtin_corpus
from pellucid.train import Event, Request, train
from pellucid.train.keeper import Keeper
from pellucid.train.step import TrainStep
from pellucid.training_config import TrainingConfig

SMALL = {"num_layers": 4, "d_model": 128, "num_heads": 4, "context_length": 64}  # the small shape of bench
SMALL_ROWS = 12


class Clock:
    """Adds up how long some methods take, and keeps each duration."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def time(self, kind: type, name: str) -> None:
        inner, seconds = getattr(kind, name), self.seconds.setdefault(name, [])

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                seconds.append(time.perf_counter() - begun)

        setattr(kind, name, timed)


def run(out: Path, observe: Any = lambda event: None, **rest: Any) -> None:
    """A run on the built-in corpus."""
    training = TrainingConfig(**rest.pop("training"))
    train(Request(sources=builtin_corpus(), name="", out=out, training=training, **rest), observe)


def loop(out: Path) -> None:
    """Time inside steps against the time between the first and the last."""
    clock, marks = Clock(), []
    clock.time(TrainStep, "__call__")

    def observe(event: Event) -> None:
        if type(event).__name__ == "StepDone":
            marks.append(time.perf_counter())

    begun_at = clock.seconds["__call__"]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout, kept = nowhere, sys.stdout
        run(out, observe, model=SMALL, training={"steps": 400, "batch_size": SMALL_ROWS, "evaluations": 1})
        sys.stdout = kept
    steps = begun_at[-400:]
    # without the very first, and the last with its evaluation
    between = [after - before for before, after in itertools.pairwise(marks[:-1])]
    inside = steps[1:-1]
    print(
        f"loop: {statistics.median(between) / statistics.median(inside) - 1:.2%} around a step of"
        f" {1000 * statistics.median(inside):.1f} ms ({sum(between) / sum(inside) - 1:.2%} of all)"
    )


def data(out: Path) -> None:
    """Time to make a batch against the whole step."""
    from pellucid.data import Batches

    clock = Clock()
    clock.time(TrainStep, "__call__")
    clock.time(Batches, "at")
    run(out, model=SMALL, training={"steps": 400, "batch_size": SMALL_ROWS, "evaluations": 1})
    share = sum(clock.seconds["at"][-400:]) / sum(clock.seconds["__call__"][-400:])
    print(f"data: {share:.2%} of a step is making its batch")


def saving(out: Path) -> None:
    """Checkpoints and best weights of the default recipe, against its time."""
    clock = Clock()
    clock.time(Keeper, "checkpoint")
    clock.time(Keeper, "best")
    begun = time.perf_counter()
    run(out, training={"minutes": 3.0})
    seconds = time.perf_counter() - begun
    saves = clock.seconds["checkpoint"] + clock.seconds["best"]
    print(
        f"saving: {sum(saves) / seconds:.2%} of {seconds:.0f} s; the longest of {len(saves)} stalls {max(saves):.2f} s"
    )


def memory() -> None:
    """Peak memory of a process that accumulates 8 times against one that does so twice."""
    peaks = {parts: float(_alone("peak", str(parts))) for parts in (2, 8)}
    print(f"memory: 8 micro-batches {peaks[8] / peaks[2]:.3f} of 2 ({peaks[8]:.0f} and {peaks[2]:.0f} MB)")


def peak(parts: int) -> None:
    """Peak memory, in MB, of some steps of as many micro-batches of 4 rows."""
    with tempfile.TemporaryDirectory() as folder:
        training = {"steps": 6, "batch_size": 4 * parts, "micro_batch_size": 4, "compile": "off", "evaluations": 1}
        run(Path(folder, "run"), model={"d_model": 256, "num_heads": 8, "num_layers": 6}, training=training)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def processes() -> None:
    """Tokens per second of two processes against one, in turns."""
    rates: dict[str, list[float]] = {"one": [], "two": []}
    for _ in range(2):
        for name, ranks, threads in (("one", 1, 2), ("two", 2, 1)):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder, "run")
                launcher = (
                    ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if ranks == 2 else []
                )
                words = f"train --steps 60 --evaluations 1 --out {out} --threads {threads}".split()
                words += ["--compile", "on", "--precision", "bfloat16"]
                subprocess.run(
                    [sys.executable, *launcher, "-m", "pellucid", *words],
                    env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    check=True,
                )
                events = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
            steps = [event["tokens_per_second"] for event in events if event["event"] == "StepDone"]
            rates[name].append(steps[-1])
    one, two = (statistics.median(rates[name]) for name in ("one", "two"))
    print(f"processes: 2 x DDP {two:,.0f} tokens/s, one process {one:,.0f}: {1 - two / one:.1%} lost ({rates})")


def _alone(*words: str) -> str:
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def main() -> None:
    """Measure what was asked for."""
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    asked = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        match asked:
            case ["loop"]:
                loop(Path(folder, "loop"))
                data(Path(folder, "data"))
            case ["saving"]:
                saving(Path(folder, "saving"))
            case ["memory"]:
                memory()
            case ["peak", parts]:
                peak(int(parts))
            case ["processes"]:
                processes()
            case _:
                print(__doc__)


if __name__ == "__main__":
    main()
