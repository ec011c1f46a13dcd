"""The model of a run: new, or one that has learned, or as a checkpoint has it; with factors, if they are trained.

In: a recipe, a `Start`, a checkpoint.  Out: a `TransformerLM` on its device.  Used by: assembly.
Read next: assembly.py.
"""

from collections.abc import Callable

import torch

from pellucid.checkpoint import Checkpoint, RunFolder, load_weights
from pellucid.lora import add_factors, load_trained
from pellucid.nn import TransformerLM, initialize
from pellucid.train.device import Capabilities, check_device
from pellucid.train.recipe import Recipe
from pellucid.train.start import Start
from pellucid.train.variant import checkpoint_activations
from pellucid.training_config import TrainingConfig


def fresh_model(recipe: Recipe, vocab_size: int, training: TrainingConfig, rank: int = 0) -> TransformerLM:
    """A new model on its device; its weights are made on the CPU, so that every device and rank begins alike."""
    model = TransformerLM(recipe.model_config(vocab_size))
    initialize(model, recipe.initialization, seed=training.seed)
    return ready(model, training.device, training, rank)


def started_model(start: Start, recipe: Recipe, training: TrainingConfig) -> TransformerLM:
    """The model to go on from, with factors beside its maps if they are to be trained."""
    model = start.model({name: value for name, value in recipe.model.items() if name == "dropout"}).train()
    adapter(training, start.has_new_tokens)(model)
    return model


def adapter(training: TrainingConfig, train_vocabulary: bool) -> Callable[[TransformerLM], object]:
    """Puts factors beside a model's maps, if such are asked for."""
    if training.lora is None:
        return lambda model: None
    targets = tuple(filter(None, training.lora_targets.split(",")))
    how = {"rank": training.lora, "alpha": training.lora_alpha, "targets": targets, "seed": training.seed}
    return lambda model: add_factors(model, **how, train_vocabulary=train_vocabulary)


def model_again(
    folder: RunFolder, checkpoint: Checkpoint, recipe: Recipe, training: TrainingConfig, rank: int = 0
) -> TransformerLM:
    """The model of a checkpoint on the device of its plan; one with factors stands on what the run began with."""
    if training.lora is not None:
        model = started_model(Start.again(folder.facts["from"]), recipe, training)
        load_trained(model, checkpoint.model, folder.path)
    else:
        model = TransformerLM(folder.model_config())
        load_weights(model, checkpoint.model, folder.path)
    return ready(model, folder.facts["plan"]["device"], training, rank).train()


def ready(model: TransformerLM, device: str, training: TrainingConfig, rank: int) -> TransformerLM:
    """A model on its device."""
    kind = check_device(device, Capabilities.of_this_machine())
    if training.activation_checkpointing:
        checkpoint_activations(model)
    return model.to(f"cuda:{rank % torch.cuda.device_count()}" if kind == "cuda" else kind)
