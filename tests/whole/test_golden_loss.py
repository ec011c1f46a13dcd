"""Twelve steps of training give, on one thread, the same losses to the last digit as when this was written.

Whoever changes them has changed the mathematics, or only the order of a sum; if it was meant, write the new ones down
(`python -m tests.whole.test_golden_loss`), and say in the commit why they moved. Another processor adds in another
order, so there the digits are compared less closely.
"""

import re
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from pellucid import presets
from pellucid.data import Batches, prepare
from pellucid.nn import TransformerLM, initialize
from pellucid.optim import build_optimizer, learning_rate_fraction
from pellucid.text import character_tokenizer
from pellucid.train import Variant, loss_function
from pellucid.train.machine import reproducible
from pellucid.train.step import TrainStep
from pellucid.training_config import OptimizerConfig, ScheduleConfig
from tests.train.small_run import small_sources, small_text

STEPS = 12
GOLDEN = {
    (0.0, "muon"): [
        *(3.9379754066467285, 3.697063446044922, 3.381019115447998, 2.995065212249756),
        *(2.4786477088928223, 2.6844778060913086, 2.2131712436676025, 1.9169418811798096),
        *(2.130216598510742, 2.0600855350494385, 1.9078881740570068, 1.9854607582092285),
    ],
    (0.1, "adamw"): [
        *(3.9450225830078125, 2.494093894958496, 2.232137441635132, 2.2253317832946777),
        *(2.2146763801574707, 1.9786572456359863, 1.6695919036865234, 1.7649693489074707),
        *(1.7254317998886108, 1.730976939201355, 1.5830656290054321, 1.7188818454742432),
    ],
}
WRITTEN_ON = ("AVX512", "AuthenticAMD")


def machine() -> tuple[str, str]:
    information = Path("/proc/cpuinfo")
    vendors = re.findall("^vendor_id.*: (.*)", information.read_text() if information.exists() else "", re.MULTILINE)
    return torch.backends.cpu.get_cpu_capability(), vendors[0] if vendors else "unknown"


def losses(dropout: float, algorithm: str, folder: Path) -> list[float]:
    """Everything that could be chosen is written here: no recipe's change may move these digits."""
    tokenizer = character_tokenizer([small_text()])
    data = prepare(small_sources(), tokenizer, folder)
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 64, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2}
    model = TransformerLM(presets.default(**sizes, context_length=32, dropout=dropout))
    initialize(model, "course", seed=7)
    config = OptimizerConfig(
        matrix_algorithm=algorithm,
        matrix_learning_rate=0.02,
        matrix_weight_decay=0.1,
        embedding_learning_rate=0.009,
        embedding_weight_decay=0.03,
        head_learning_rate=0.003,
        vector_learning_rate=0.003,
        momentum=0.95,
        beta1=0.9,
        beta2=0.95,
    )
    step = TrainStep(
        model,
        loss_function(model, Variant()),
        build_optimizer(model, config),
        Batches(data.train, context_length=32, batch_size=4, seed=7),
        max_gradient_norm=1.0,
        micro_batch_size=3,
        seed=7,
    )
    schedule = ScheduleConfig(shape="trapezoid", warm_up_steps=3, decay_fraction=0.5, final_fraction=0.1)
    with reproducible(1):
        rates = [learning_rate_fraction(number, STEPS, schedule) for number in range(1, STEPS + 1)]
        return [step(number, rate).loss for number, rate in enumerate(rates, 1)]


@pytest.mark.parametrize(("dropout", "algorithm"), GOLDEN)
def test_the_loss_of_every_step_is_golden(no_shape_checks, tmp_path, dropout, algorithm):
    golden = GOLDEN[dropout, algorithm]
    found = losses(dropout, algorithm, tmp_path)
    if machine() == WRITTEN_ON:
        assert found == golden
    assert found == pytest.approx(golden, rel=1e-4)


if __name__ == "__main__":
    found = {choice: losses(*choice, Path(tempfile.mkdtemp())) for choice in GOLDEN}
    sys.stdout.write(f"{machine()}\n{found}\n")
