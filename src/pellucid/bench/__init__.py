"""How fast pellucid trains and writes here, against a plain loop, against peers, and against its own other ways.

    load → plain → memory → contender → rounds → speed_report → train_speed        (reading order)
    bandwidth → writers → generate_speed

In: sizes; a model.  Out: a report of figures.  Used by: the command line.  Read next: load.py.
"""

from pellucid.bench.contender import Contender, Elsewhere, Here, Taken
from pellucid.bench.generate_speed import GenerateReport, GenerateRow, bench_generate
from pellucid.bench.load import TrainingLoad, adamw
from pellucid.bench.plain import PlainGPT, PlainLoop, fits_plain
from pellucid.bench.rounds import interleave, ratio
from pellucid.bench.speed_report import Measured, SpeedReport, SpeedRow
from pellucid.bench.train_speed import bench_train, flop_per_step, plan

__all__ = [
    "Contender",
    "Elsewhere",
    "GenerateReport",
    "GenerateRow",
    "Here",
    "Measured",
    "PlainGPT",
    "PlainLoop",
    "SpeedReport",
    "SpeedRow",
    "Taken",
    "TrainingLoad",
    "adamw",
    "bench_generate",
    "bench_train",
    "fits_plain",
    "flop_per_step",
    "interleave",
    "plan",
    "ratio",
]
