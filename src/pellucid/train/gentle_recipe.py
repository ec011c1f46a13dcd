"""How a model that has learned already is trained on: gently, so that it learns the new text and keeps what it knows.

From scratch, Muon throws matrices far, and decay pulls them towards 0, for there is nothing to lose. Here every weight
is moved by AdamW at one low rate, and nothing decays: 0 is not where the weights came from. The rate is the one at
which what is learned of the new text and what is forgotten of the old balance (docs/log.md); Muon was no better there.
Everything is overridden by flags.

In: what the model is, characters, a device.  Out: `Recipe`.  Used by: request.  Read next: request.py.
"""

from pellucid.model_config import ModelConfig
from pellucid.train.recipe import Recipe
from pellucid.training_config import OptimizerConfig, ScheduleConfig

LONGEST_ROW = 512  # tokens: most chats and pages; attention to more costs more than it brings in a short run
MOST_TOKENS = 4096  # in a step
STEP_FLOPS = 1e12  # of a step on a CPU, about ten seconds on two cores: a large model takes fewer tokens a step
FLOPS_PER_WEIGHT = 6  # and token: two forward, four backward (Kaplan et al. 2020, section 2.1)
STEPS_PER_READING = 10  # of a short text at least, if it has as many rows: a step a reading is no training
CHARACTERS_PER_TOKEN = 4
MOST_READINGS = 10  # the step that does best on held-out text is kept, mostly of the third to fifth reading
RATE, RATE_WIDTH = 1e-3, 160  # peak rate of every weight at this width; wide ones bear less (Yang et al. 2022, muP)
FACTORS_RATE = 10.0  # times that, for low-rank factors: Schulman et al. 2025, "LoRA Without Regret"


def choose_gentle_recipe(config: ModelConfig, num_weights: int, characters: int, *, device: str, rate: float) -> Recipe:
    """The recipe for going on from a model.

    Args:
        config: The model's.
        num_weights: How many it has.
        characters: Length of the text.
        device: Where it is trained.
        rate: What the rate of the matrices is multiplied by: 1, or `FACTORS_RATE` for factors beside them.

    Example:
        >>> config = ModelConfig(d_model=576, num_heads=9, context_length=8192)
        >>> recipe = choose_gentle_recipe(config, 134_000_000, 10**6, device="cpu", rate=1.0)
        >>> recipe.model, recipe.batch_size, recipe.optimizer.matrix_algorithm
        ({'context_length': 512}, 2, 'adamw')
    """
    context_length = min(config.context_length, LONGEST_ROW)
    tokens = MOST_TOKENS
    if device == "cpu":
        tokens = min(tokens, STEP_FLOPS / (FLOPS_PER_WEIGHT * num_weights))
    rows = characters / CHARACTERS_PER_TOKEN / context_length
    batch_size = max(1, int(min(tokens / context_length, rows / STEPS_PER_READING)))
    gentle = RATE * RATE_WIDTH / config.d_model
    return Recipe(
        preset="from",
        model={"context_length": context_length},
        batch_size=batch_size,
        most_readings=MOST_READINGS,
        most_decay=0.0,
        optimizer=OptimizerConfig(
            matrix_algorithm="adamw",
            matrix_learning_rate=rate * gentle,
            matrix_weight_decay=0.0,
            embedding_learning_rate=gentle,
            head_learning_rate=gentle,
            vector_learning_rate=gentle,
            embedding_weight_decay=0.0,
        ),
        schedule=ScheduleConfig(),
    )
