"""What to train: a table from the size of the text and the minutes to sizes, regularisation and rates.

A small text is learned by heart before the time is up, so it gets a smaller, more regularised model, and is read only
so often; a short run cannot use a large one. The figures were found by experiment (docs/log.md), are decided before
the run and never by looking at its held-out loss, and are all overridden by flags.

In: characters, minutes.  Out: `Recipe`.  Used by: request, bench.  Read next: facts.py.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from pellucid import presets
from pellucid.model_config import ModelConfig
from pellucid.nn.initialize import Scheme
from pellucid.training_config import OptimizerConfig, ScheduleConfig

PRESETS = {"default": presets.default, "gpt2": presets.gpt2, "char-gpt": presets.char_gpt}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that is decided before the text is tokenized."""

    tokenizer: str | None = None
    """characters, bpe, or the path of a tokenizer.json; None: characters or bpe, as the script of the text needs it."""
    vocab_size: int | None = None
    """bpe: ids to learn; None: as many as the script of the text needs."""
    least_vocab_size: int = 512
    """bpe: the fewest ids that are worth while in a text of this size, if `vocab_size` does not say how many."""
    preset: str = "default"
    """Which function of `presets` makes the model."""
    model: dict[str, Any] = field(default_factory=dict)
    """Arguments for it, vocab_size aside."""
    batch_size: int = 16
    """Rows per step."""
    initialization: Scheme = "zero-output"
    """Scheme of `nn.initialize`."""
    most_characters: int | None = None
    """How much text is made ready, an even share of a long one: about what the run can read; None for all."""
    most_readings: float | None = None
    """How often the text may be read before the model knows it by heart and does worse on other text, if ever."""
    most_decay: float = 0.8
    """The most that weights decay, however often the text is read; less where dropout helps."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)

    def model_config(self, vocab_size: int) -> ModelConfig:
        """The model for a tokenizer of `vocab_size` ids."""
        return PRESETS[self.preset](**{"vocab_size": vocab_size, **self.model})

    def as_json(self) -> dict[str, Any]:
        """The recipe as run.json keeps it."""
        return asdict(self)

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> "Recipe":
        """The recipe that run.json keeps, among other things."""
        own = {one.name: kept[one.name] for one in fields(cls) if one.name in kept}  # an older run may say less
        return cls(
            **own | {"optimizer": OptimizerConfig(**own["optimizer"]), "schedule": ScheduleConfig(**own["schedule"])}
        )


@dataclass(frozen=True)
class Row:
    """A row of the table: for texts up to `characters` and runs up to `minutes`."""

    characters: int | float
    minutes: int | float
    num_layers: int
    d_model: int
    context_length: int
    least_vocab_size: int
    batch_size: int
    tokenizer: str | None = None
    dropout: float = 0.0
    most_readings: float | None = None
    most_decay: float = 0.8  # 16 readings of 1 MB: 1.827 bits, with 0.5 1.835


ALL = math.inf
TABLE = (  # the first row that fits; the others than found by experiment (docs/log.md) keep their proportions
    Row(
        *(100_000, ALL),
        num_layers=3,
        d_model=128,
        context_length=128,
        least_vocab_size=512,
        batch_size=8,
        tokenizer="characters",
        dropout=0.3,
        most_readings=32,
        most_decay=0.5,
    ),
    Row(
        *(400_000, ALL),
        num_layers=4,
        d_model=160,
        context_length=256,
        least_vocab_size=512,
        batch_size=16,
        dropout=0.3,
        most_readings=24,
        most_decay=0.7,
    ),
    Row(
        *(800_000, 12),
        num_layers=4,
        d_model=192,
        context_length=256,
        least_vocab_size=1024,
        batch_size=16,
        dropout=0.2,
        most_readings=24,
    ),
    Row(ALL, 12, num_layers=4, d_model=192, context_length=256, least_vocab_size=1024, batch_size=16),
    Row(3_000_000, ALL, num_layers=4, d_model=256, context_length=256, least_vocab_size=1024, batch_size=16),
    Row(ALL, 60, num_layers=6, d_model=320, context_length=256, least_vocab_size=2048, batch_size=16),
    Row(ALL, ALL, num_layers=8, d_model=512, context_length=512, least_vocab_size=4096, batch_size=16),
)
D_HEAD = 32
MATRIX_RATE = 0.04
MANY_LETTERS, FEWER_READINGS = 1000, 3  # of thousands of letters each comes so seldom that it is soon known by heart
CHARACTERS_PER_MINUTE = 4_500_000  # what two cores read at most: 28,000 tokens/s of 2.4 characters at 4 x 192
DECAY_PER_READING = 0.055  # of the matrices, per time the text is read; for seven to ten readings (docs/log.md)
EMBEDDING_SHARE = 0.5  # of the matrices' decay, for embeddings and head


def choose_recipe(characters: int, minutes: float, preset: str = "default", alphabet: int = 0) -> Recipe:
    """The recipe for a text of this many characters, `alphabet` of them different, and a run of this many minutes.

    Example:
        >>> choose_recipe(1_000_000, minutes=5.0).model["d_model"]
        192
    """
    row = next(row for row in TABLE if characters <= row.characters and minutes <= row.minutes)
    seldom = FEWER_READINGS if alphabet > MANY_LETTERS else 1
    recipe = Recipe(
        preset=preset,
        tokenizer=row.tokenizer,
        least_vocab_size=row.least_vocab_size,
        batch_size=row.batch_size,
        model={
            "num_layers": row.num_layers,
            "d_model": row.d_model,
            "num_heads": row.d_model // D_HEAD,
            "context_length": row.context_length,
            "dropout": row.dropout,
        },
        most_characters=math.ceil(CHARACTERS_PER_MINUTE * minutes),
        most_readings=row.most_readings and row.most_readings / seldom,
        most_decay=row.most_decay,
        optimizer=OptimizerConfig(matrix_learning_rate=MATRIX_RATE),
    )
    match preset:
        case "gpt2":
            return replace(recipe, initialization="gpt2")
        case "char-gpt":
            return replace(recipe, tokenizer="characters", model={}, batch_size=32, initialization="gpt2")
    return recipe


def with_decay(config: OptimizerConfig, readings: float, most: float = 0.8) -> OptimizerConfig:
    """Weight decay for a text that is read so often, where none was asked for.

    A text that is read many times is learned by heart unless the weights are held down; read once or twice, it is not,
    and they need not be.

    Example:
        >>> with_decay(OptimizerConfig(), readings=4.0).matrix_weight_decay
        0.22
        >>> with_decay(OptimizerConfig(matrix_weight_decay=0.0), readings=4.0).embedding_weight_decay
        0.0
    """
    matrices = config.matrix_weight_decay
    if matrices is None:
        matrices = min(most, DECAY_PER_READING * readings)
    embeddings = config.embedding_weight_decay
    if embeddings is None:
        embeddings = EMBEDDING_SHARE * matrices
    return replace(config, matrix_weight_decay=matrices, embedding_weight_decay=embeddings)
