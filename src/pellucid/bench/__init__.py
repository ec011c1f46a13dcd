"""How fast pellucid trains here, against a plain loop and against its own other ways.

    load → plain → memory → contender → rounds → speed_report → train_speed        (reading order)

In: sizes.  Out: a report of figures.  Used by: the command line.  Read next: load.py.
"""

from pellucid.bench.contender import Contender, Elsewhere, Here, Taken
from pellucid.bench.load import TrainingLoad, adamw
from pellucid.bench.plain import PlainGPT, PlainLoop, fits_plain
from pellucid.bench.rounds import interleave, ratio
from pellucid.bench.speed_report import Measured, SpeedReport, SpeedRow
from pellucid.bench.train_speed import bench_train, flop_per_step, plan

__all__ = [
    "Contender",
    "Elsewhere",
    "Here",
    "Measured",
    "PlainGPT",
    "PlainLoop",
    "SpeedReport",
    "SpeedRow",
    "Taken",
    "TrainingLoad",
    "adamw",
    "bench_train",
    "fits_plain",
    "flop_per_step",
    "interleave",
    "plan",
    "ratio",
]
