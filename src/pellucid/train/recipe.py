"""What to train: a table from the size of the text and the minutes to sizes, regularisation and rates.

A small text is learned by heart before the time is up, so it gets a smaller, more regularised model; a short run
cannot use a large one. The figures were found by experiment (docs/log.md) and are all overridden by flags.

In: characters, minutes.  Out: `Recipe`.  Used by: request, bench.  Read next: facts.py.
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


@dataclass(frozen=True)
class Row:
    """A row of the table: for texts up to `characters` and runs up to `minutes`."""

    characters: int | float
    minutes: int | float
    num_layers: int
    d_model: int
    context_length: int
    vocab_size: int
    batch_size: int


ALL = float("inf")
TABLE = (  # the first row that fits; the third was found by experiment, the others keep its proportions
    Row(100_000, ALL, num_layers=3, d_model=128, context_length=128, vocab_size=512, batch_size=16),
    Row(400_000, ALL, num_layers=4, d_model=160, context_length=256, vocab_size=512, batch_size=16),
    Row(ALL, 12, num_layers=4, d_model=192, context_length=256, vocab_size=1024, batch_size=16),
    Row(3_000_000, ALL, num_layers=4, d_model=256, context_length=256, vocab_size=1024, batch_size=16),
    Row(ALL, 60, num_layers=6, d_model=320, context_length=256, vocab_size=2048, batch_size=16),
    Row(ALL, ALL, num_layers=8, d_model=512, context_length=512, vocab_size=4096, batch_size=16),
)
D_HEAD = 32

CHARACTERS_PER_MINUTE = 2_000_000  # what two cores read at 4 x 192: 10,000 to 18,000 tokens/s of 2.4 characters
MATRIX_RATE = 0.04
DECAY_PER_READING = 0.055  # of the matrices, per time the text is read; for seven to ten readings (docs/log.md)
MOST_DECAY = 0.5
EMBEDDING_SHARE = 0.5  # of the matrices' decay, for embeddings and head


def choose_recipe(characters: int, minutes: float, preset: str = "default") -> Recipe:
    """The recipe for a text of this many characters and a run of this many minutes.

    A text that is read many times is learned by heart unless weights are held down, so the decay grows with the
    expected number of readings; dropout brought nothing beside it, and costs a fifth of the speed.

    Example:
        >>> recipe = choose_recipe(1_000_000, minutes=5.0)
        >>> recipe.model["d_model"], recipe.optimizer.matrix_weight_decay
        (192, 0.5)
    """
    row = next(row for row in TABLE if characters <= row.characters and minutes <= row.minutes)
    readings = minutes * CHARACTERS_PER_MINUTE / characters
    decay = min(MOST_DECAY, DECAY_PER_READING * readings)
    recipe = Recipe(
        preset=preset,
        vocab_size=row.vocab_size,
        batch_size=row.batch_size,
        model={
            "num_layers": row.num_layers,
            "d_model": row.d_model,
            "num_heads": row.d_model // D_HEAD,
            "context_length": row.context_length,
            "dropout": 0.0,
        },
        optimizer=OptimizerConfig(
            matrix_learning_rate=MATRIX_RATE,
            matrix_weight_decay=decay,
            embedding_weight_decay=EMBEDDING_SHARE * decay,
        ),
    )
    match preset:
        case "gpt2":
            return replace(recipe, initialization="gpt2")
        case "char-gpt":
            return replace(recipe, tokenizer="characters", model={}, batch_size=32, initialization="gpt2")
    return recipe
