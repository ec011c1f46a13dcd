"""A run's model: new, gone on from, or as a checkpoint has it."""

import torch

from pellucid.lora import is_adapted, trained_state
from pellucid.train import Recipe, Start
from pellucid.train.run_model import adapter, fresh_model, started_model
from pellucid.training_config import TrainingConfig
from tests.train.small_run import MODEL, small_model
from tests.whole.fine_tuning_runs import make_source


def test_a_fresh_model_follows_from_the_seed_alone():
    recipe = Recipe(model=MODEL)
    one, same, other = (fresh_model(recipe, 24, TrainingConfig(seed=seed, device="cpu")) for seed in (1, 1, 2))
    weights = [model.blocks[0].attention.query_key_value.weight for model in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_one_that_goes_on_has_factors_if_they_are_asked_for(tmp_path):
    start, recipe = Start.open(make_source(tmp_path / "source")), Recipe(model={"context_length": 16, "dropout": 0.1})
    plain, adapted = (started_model(start, recipe, TrainingConfig(lora=rank)) for rank in (None, 2))
    assert (is_adapted(plain), is_adapted(adapted)) == (False, True)
    assert (adapted.training, adapted.config.dropout, adapted.config.context_length) == (True, 0.1, 128)


def test_settings_say_which_maps_get_factors():
    model = small_model()
    adapter(TrainingConfig(lora=2, lora_targets="query,down", lora_alpha=1.0), train_vocabulary=False)(model)
    names = {name.split(".factors.")[1].split(".")[0] for name in trained_state(model)}
    assert names == {"query", "down"}
    assert model.blocks[0].feed_forward.down.scaling == 0.5
