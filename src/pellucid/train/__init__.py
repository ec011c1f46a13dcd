"""Training: from text to a model that writes, as a run that is counted in steps and can be gone on with.

    the step        events → one_program → variant → probe → step → ceiling → device → trial
    beside it       evaluation → sample → addresses → first_non_finite → health → outliers → watcher →
                    eyes → live_bytes → memory
    what to train   recipe → facts → request → material
    the run         progress → plan → trouble → keeper → loop → float32 → machine → parts → assembly → run

In: a `Request`.  Out: a run folder, and events to whoever listens.  Used by: the command line, bench.
Read next: events.py.
"""

from pellucid.train.evaluation import evaluate
from pellucid.train.events import (
    CompileBegun,
    CoolingDown,
    Evaluated,
    Event,
    Extended,
    Finished,
    MicroBatchHalved,
    ModuleHealth,
    Noticed,
    Observer,
    Planned,
    Replanned,
    Resumed,
    Sampled,
    Saved,
    StartOpened,
    StartScored,
    StepDone,
    TextRead,
    TextTokenized,
    VariantTried,
    YardsticksMeasured,
)
from pellucid.train.progress import Wish
from pellucid.train.recipe import PRESETS, Recipe, choose_recipe
from pellucid.train.request import Request
from pellucid.train.run import join, resume, train
from pellucid.train.start import Start
from pellucid.train.variant import Variant, loss_function

__all__ = [
    "PRESETS",
    "CompileBegun",
    "CoolingDown",
    "Evaluated",
    "Event",
    "Extended",
    "Finished",
    "MicroBatchHalved",
    "ModuleHealth",
    "Noticed",
    "Observer",
    "Planned",
    "Recipe",
    "Replanned",
    "Request",
    "Resumed",
    "Sampled",
    "Saved",
    "Start",
    "StartOpened",
    "StartScored",
    "StepDone",
    "TextRead",
    "TextTokenized",
    "Variant",
    "VariantTried",
    "Wish",
    "YardsticksMeasured",
    "choose_recipe",
    "evaluate",
    "join",
    "loss_function",
    "resume",
    "train",
]
