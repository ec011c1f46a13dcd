"""What to train: a table from the size of the text and the minutes to sizes, regularisation and rates.

A small text is learned by heart before the time is up, so it gets a smaller, more regularised model; a short run
cannot use a large one. The figures were found by experiment (docs/log.md) and are all overridden by flags.

In: characters, minutes.  Out: `Recipe`.  Used by: prepare step of run.py, bench.  Read next: probe.py.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pellucid import presets
from pellucid.model_config import ModelConfig
from pellucid.nn.initialize import Scheme
from pellucid.training_config import OptimizerConfig, ScheduleConfig

PRESETS = {"default": presets.default, "gpt2": presets.gpt2, "char-gpt": presets.char_gpt}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that is decided before the text is tokenized."""

    tokenizer: str = "bpe"
    """characters, bpe, or the path of a tokenizer.json."""
    vocab_size: int = 1024
    """bpe: ids to learn."""
    preset: str = "default"
    """Which function of `presets` makes the model."""
    model: dict[str, Any] = field(default_factory=dict)
    """Arguments for it, vocab_size aside."""
    batch_size: int = 16
    """Rows per step."""
    initialization: Scheme = "zero-output"
    """Scheme of `nn.initialize`."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)

    def model_config(self, vocab_size: int) -> ModelConfig:
        """The model for a tokenizer of `vocab_size` ids."""
        return PRESETS[self.preset](**{"vocab_size": vocab_size, **self.model})

    def as_json(self) -> dict[str, Any]:
        """The recipe as run.json keeps it."""
        return asdict(self)


SHAPES = (  # (characters up to, sizes, vocabulary, dropout) for runs of a few minutes
    (100_000, {"d_model": 128, "num_layers": 3, "num_heads": 4, "context_length": 128}, 512, 0.2),
    (400_000, {"d_model": 160, "num_layers": 4, "num_heads": 5, "context_length": 192}, 512, 0.1),
    (float("inf"), {"d_model": 192, "num_layers": 4, "num_heads": 6, "context_length": 256}, 1024, 0.0),
)


def choose_recipe(characters: int, minutes: float, preset: str = "default") -> Recipe:
    """The recipe for a text of this many characters and a run of this many minutes.

    Example:
        >>> choose_recipe(1_000_000, minutes=5).model["d_model"]
        192
    """
    sizes, vocab_size, dropout = next(row[1:] for row in SHAPES if characters <= row[0])
    recipe = Recipe(preset=preset, vocab_size=vocab_size, model={**sizes, "dropout": dropout})
    match preset:
        case "gpt2":
            return replace(recipe, initialization="gpt2")
        case "char-gpt":
            return replace(recipe, tokenizer="characters", model={}, batch_size=32, initialization="gpt2")
    return recipe
