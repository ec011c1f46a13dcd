"""The memory that a process takes which trains a few steps: run in a process of its own, by test_memory.py.

In: sizes, as JSON.  Out: bytes, on the screen.  Used by: test_memory.py.  Read next: test_memory.py.
"""

import json
import resource
import sys

import torch

from pellucid import presets
from pellucid.nn import TransformerLM
from pellucid.optim import build_optimizer
from pellucid.train.step import TrainStep
from pellucid.train.variant import Variant, loss_function
from pellucid.training_config import OptimizerConfig


class SameBatch:
    """The same rows at every step."""

    def __init__(self, rows: int, context_length: int, vocab_size: int) -> None:
        self.batch_size, self.context_length = rows, context_length
        self.ids = torch.randint(vocab_size, (rows, context_length + 1))

    def at(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.ids[:, :-1], self.ids[:, 1:]

    def epochs_after(self, step: int) -> float:
        return 0.0


def main() -> None:
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    model = TransformerLM(presets.default(**asked["model"]))
    step = TrainStep(
        model,
        loss_function(model, Variant(attention=asked["attention"])),
        build_optimizer(model, OptimizerConfig()),
        SameBatch(asked["rows"], model.config.context_length, model.config.vocab_size),
        max_gradient_norm=1.0,
    )
    for number in range(1, asked["steps"] + 1):
        step(number, 0.1)
    unit = 1 if sys.platform == "darwin" else 1024
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit))


if __name__ == "__main__":
    main()
