"""The plain loop: the same model as ours, by other hands."""

import pytest
import torch

from pellucid.bench import PlainGPT, PlainLoop, fits_plain
from pellucid.errors import ConfigError
from pellucid.train.variant import Variant, loss_function
from tests.bench.small_load import small_load


@pytest.mark.parametrize("gelu", ["tanh", "exact"])
def test_it_gives_our_models_logits_from_our_weights(gelu):
    load = small_load(gelu=gelu)
    ours, ids = load.model(), load.at(0)[0]
    torch.testing.assert_close(PlainGPT(load.config).take_weights(ours)(ids), ours(ids))


def test_it_takes_our_steps():
    load = small_load()
    model = load.model()
    step, loop = load.train_step(model, loss_function(model, Variant())), PlainLoop(load)
    for number in range(1, 8):
        assert loop(number) == pytest.approx(step(number, 1.0).loss, rel=1e-4)


@pytest.mark.parametrize(
    "other", [{"tie_embeddings": False}, {"dropout": 0.1}, {"num_kv_heads": 1}, {"window": 4}, {"norm": "rms"}]
)
def test_another_shape_is_refused(other):
    config = small_load(**other).config
    assert not fits_plain(config)
    with pytest.raises(ConfigError, match="shape of GPT-2"):
        PlainGPT(config)


def test_the_default_shape_is_another():
    assert not fits_plain(small_load("default").config)
