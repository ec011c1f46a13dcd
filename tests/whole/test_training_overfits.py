"""The training step as a run takes it, Muon and AdamW, a schedule and clipping, learns one batch by heart."""

import pytest
import torch

from pellucid import presets
from pellucid.data import Batches
from pellucid.nn import TransformerLM, initialize
from pellucid.optim import build_optimizer, learning_rate_fraction
from pellucid.train import Variant, loss_function
from pellucid.train.step import TrainStep
from pellucid.training_config import OptimizerConfig, ScheduleConfig

STEPS = 60


class OneBatch(Batches):
    """The same eight rows of random ids at every step."""

    def __init__(self):
        self.batch_size, self.context_length = 8, 16
        self.ids = torch.randint(50, (8, 17), generator=torch.Generator().manual_seed(0))

    def at(self, step, rows=slice(None)):
        return self.ids[rows, :-1], self.ids[rows, 1:]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("algorithm", ["muon", "adamw"])
def test_a_run_learns_one_batch_by_heart(no_shape_checks, algorithm, precision):
    model = TransformerLM(presets.default(vocab_size=50, d_model=64, num_layers=2, num_heads=2, context_length=16))
    initialize(model, "zero-output", seed=0)
    optimizer = build_optimizer(model, OptimizerConfig(matrix_algorithm=algorithm))
    loss = loss_function(model, Variant(precision=precision))
    step = TrainStep(model, loss, optimizer, OneBatch(), max_gradient_norm=1.0)
    schedule = ScheduleConfig()
    results = [step(number, learning_rate_fraction(number, STEPS, schedule)) for number in range(1, STEPS + 1)]
    assert results[0].loss == pytest.approx(3.912, abs=0.01)  # log 50: zero outputs know nothing
    assert results[-1].loss < 0.1
