"""However a batch is cut into micro-batches, the same loss is printed and the same model comes of it."""

import pytest

from pellucid.train import Evaluated, Finished, StepDone
from tests.train.small_run import train_small

ROWS = 8


pytestmark = pytest.mark.usefixtures("nothing_takes_long")


@pytest.fixture(scope="module")
def uncut(tmp_path_factory):
    return train_small(tmp_path_factory.mktemp("runs") / "run", batch_size=ROWS)[1]


def losses(heard):
    return [event.bits_per_character for event in heard.of(StepDone)]


@pytest.mark.parametrize("micro_batches", [2, 4, 8])
def test_accumulation_changes_neither_loss_nor_model(tmp_path, uncut, micro_batches):
    _, heard = train_small(tmp_path / "run", batch_size=ROWS, micro_batch_size=ROWS // micro_batches)
    assert losses(heard) == pytest.approx(losses(uncut), rel=1e-5)
    norms = [[event.gradient_norm for event in one.of(StepDone)] for one in (heard, uncut)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    for kind in (Evaluated, Finished):
        assert heard.of(kind)[-1].held_out == pytest.approx(uncut.of(kind)[-1].held_out, rel=1e-4)
