"""A training step small enough for a test.

In: what shall differ.  Out: `small_load`.  Used by: the tests of bench.  Read next: test_load.py.
"""

from typing import Any

from pellucid import presets
from pellucid.bench import TrainingLoad, adamw
from pellucid.training_config import OptimizerConfig

SIZES = {"vocab_size": 24, "d_model": 32, "num_layers": 2, "num_heads": 2, "context_length": 8, "dropout": 0.0}


def small_load(preset: str = "gpt2", **sizes: Any) -> TrainingLoad:
    """GPT-2's shape with AdamW, or the default shape with Muon."""
    make = {"gpt2": presets.gpt2, "default": presets.default}[preset]
    return TrainingLoad(
        config=make(**{**SIZES, **sizes}),
        batch_size=4,
        optimizer=adamw() if preset == "gpt2" else OptimizerConfig(),
        initialization="course",
    )
