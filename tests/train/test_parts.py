import pytest
import torch

from pellucid.checkpoint import RunFolder
from pellucid.parallel import Ranks
from pellucid.train.assembly import parts_of
from pellucid.train.material import make_material
from pellucid.train.variant import Variant, checkpoints_activations, loss_function
from tests.train.small_run import Heard, small_request


@pytest.fixture
def parts_with(tmp_path):
    def make(ranks=None, **changes):
        request = small_request(tmp_path / "run", **changes)
        recipe = request.recipe()
        folder = RunFolder.create(request.out, request.first_facts(recipe))
        material = make_material(request.sources, recipe, folder.tokens_path, Heard())
        material.tokenizer.save(folder.tokenizer_path)
        return parts_of(folder, material, Heard(), ranks or Ranks())

    return make


def test_a_rehearsing_rank_takes_its_share_and_asks_nobody(parts_with):
    parts = parts_with(Ranks(1, 2), batch_size=5)
    step = parts.rehearsal(loss_function(parts.model, Variant()))
    sizes = [tuple(micro_batch[0].shape) for micro_batch in step.micro_batches(parts.batches.at(0))]
    assert sizes == [(3, 16)]
    assert step(1, 0.1).tokens == 80


def test_who_is_not_the_first_writes_no_sample(parts_with):
    parts = parts_with(Ranks(1, 2))
    assert parts.sample() == ("", "")


def test_the_mean_of_the_weights_is_kept_if_asked_for(parts_with):
    assert parts_with().train_step(Variant()).optimizer.average is None
    assert parts_with(ema=0.9).train_step(Variant()).optimizer.average.decay == 0.9


def test_blocks_are_computed_twice_if_asked_for_and_give_the_same_gradients(parts_with):
    plain, thrifty = parts_with(), parts_with(activation_checkpointing=True)
    assert not checkpoints_activations(plain.model)
    assert checkpoints_activations(thrifty.model)
    for parts in (plain, thrifty):
        parts.train_step(Variant()).accumulate(*parts.batches.at(0))
    for here, there in zip(plain.model.parameters(), thrifty.model.parameters(), strict=True):
        assert torch.equal(here.grad, there.grad)
