import math
import time
from dataclasses import replace

import pytest
import torch

from pellucid.checkpoint import RunFolder
from pellucid.errors import ConfigError, DataError
from pellucid.optim import learning_rate_fraction
from pellucid.train import assembly
from pellucid.train.assembly import assemble, assemble_again, extend, parts_of
from pellucid.train.events import MicroBatchHalved, Planned
from pellucid.train.material import make_material
from pellucid.train.recipe import with_decay
from pellucid.train.variant import loss_function
from pellucid.training_config import OptimizerConfig
from tests.train.small_run import Heard, small_request, small_sources


@pytest.fixture
def put_together(tmp_path):
    def make(most_readings=math.inf, **changes):
        request, heard = small_request(tmp_path / "run", **changes), Heard()
        recipe = replace(request.recipe(), most_readings=most_readings)
        folder = RunFolder.create(request.out, request.first_facts(recipe))
        material = make_material(request.sources, recipe, folder.tokens_path, Heard())
        material.tokenizer.save(folder.tokenizer_path)
        loop = assemble(parts_of(folder, material, heard), recipe, begun=time.monotonic())
        return loop, heard, material

    return make


def test_the_plan_says_everything_and_run_json_keeps_it(put_together):
    loop, heard, *_ = put_together(threads=1, micro_batch_size=3)
    (planned,) = heard.of(Planned)
    assert planned.variant == "float32, written-out attention, eager"
    assert (planned.batch_size, planned.micro_batch_size, planned.tokens_per_step) == (4, 3, 64)
    assert (planned.steps, planned.evaluations, planned.minutes, planned.device) == (6, 2, None, "cpu")
    assert planned.parameters == loop.keeper.model.num_parameters()
    assert planned.epochs == loop.train_step.batches.epochs_after(6)
    facts = RunFolder.open(loop.keeper.folder.path).facts
    assert facts["plan"]["variant"] == planned.variant
    assert facts["environment"]["threads"] == planned.threads == torch.get_num_threads()
    assert facts["model"]["d_model"] == 32


def test_the_trial_leaves_no_trace_in_the_weights(put_together, monkeypatch):
    weights = put_together()[0].keeper.model.state_dict()
    monkeypatch.setattr(assembly, "choose_variant", lambda model, *_, **__: (assembly.Variant(), lambda *_: None, 1.0))
    untouched = put_together()[0].keeper.model.state_dict()
    assert all(torch.equal(weights[name], untouched[name]) for name in weights)


def test_every_variant_is_compared_on_the_weights_of_the_reference(put_together, monkeypatch):
    """Of a model that has learned, the comparison takes the weights as they are: no timed step may have moved them."""
    chosen = assembly.choose_variant

    def watched(model, batch, config, time_step, *rest, **how):
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}

        def timed(loss):
            seconds = time_step(loss)
            assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
            return seconds

        return chosen(model, batch, config, timed, *rest, **how)

    monkeypatch.setattr(assembly, "choose_variant", watched)
    put_together()


def test_the_optimizer_begins_with_nothing_remembered(put_together):
    assert put_together()[0].train_step.optimizer.state_dict() == {}


def test_no_more_rows_are_probed_than_there_is_memory_for(put_together, monkeypatch):
    seen = []

    def choose(model, batch, *_, **__):
        seen.append(tuple(batch[0].shape))
        return assembly.Variant(), lambda *_: None, 1.0

    monkeypatch.setattr(assembly, "choose_variant", choose)
    put_together(micro_batch_size=2)
    put_together()
    assert seen == [(2, 16), (4, 16)]


def test_a_training_split_shorter_than_the_context_is_refused_with_all_three_numbers(put_together):
    with pytest.raises(DataError, match=r"2,901 tokens in the training split .* but got 2,861: .* at most 2,860"):
        put_together(model={"context_length": 2900})


@pytest.mark.parametrize("context_length", [389, 390])
def test_a_training_split_of_one_token_more_than_the_context_trains(put_together, context_length):
    loop, *_ = put_together(
        sources=small_sources(400), model={"context_length": context_length}, batch_size=1, steps=1, evaluations=1
    )
    assert len(loop.train_step.batches.tokens) == 391
    assert loop().step == 1


def test_ids_that_the_model_has_no_row_for_are_refused_before_the_first_step(put_together):
    with pytest.raises((DataError, ConfigError), match=r"vocabulary of 10 .*vocabulary of 22.*largest id"):
        put_together(model={"vocab_size": 10})


def test_minutes_become_steps(put_together):
    loop, heard, *_ = put_together(steps=None, minutes=0.2)
    assert loop.deadline is not None
    (planned,) = heard.of(Planned)
    assert planned.steps * planned.step_seconds < 12
    assert planned.minutes == 0.2


def test_a_text_is_not_read_more_often_than_it_is_worth_and_its_decay_follows(put_together):
    loop, heard, *_ = put_together(most_readings=3.0, steps=None, minutes=30.0)
    (planned,) = heard.of(Planned)
    assert planned.used_up
    assert 2.5 < planned.epochs <= 3.0
    assert planned.steps <= loop.most_steps < planned.steps + 1
    decay = with_decay(OptimizerConfig(), planned.epochs).matrix_weight_decay
    assert planned.optimizer["matrix_weight_decay"] == decay > 0
    assert loop.train_step.optimizer.param_groups[0]["weight_decay"] == decay


def test_steps_that_were_asked_for_are_taken_however_often_that_reads_the_text(put_together):
    _, heard, *_ = put_together(most_readings=0.1)
    (planned,) = heard.of(Planned)
    assert (planned.steps, planned.used_up) == (6, False)


def test_a_run_is_put_together_again_as_it_was_left(put_together):
    loop, _, material = put_together()
    loop()
    folder = loop.keeper.folder
    checkpoint = folder.load_checkpoint(folder.latest_checkpoint())
    run = RunFolder.open(folder.path)
    again = assemble_again(parts_of(run, material, Heard(), checkpoint=checkpoint), checkpoint, assembly.Variant())
    assert again.progress == loop.progress
    assert again.schedule == loop.schedule
    assert again.evaluations == loop.evaluations
    assert again.keeper.model.training
    for name, tensor in loop.keeper.model.state_dict().items():
        assert torch.equal(again.keeper.model.state_dict()[name], tensor)
    here, there = again.train_step.optimizer.state_dict(), loop.train_step.optimizer.state_dict()
    assert here.keys() == there.keys()
    assert all(torch.equal(here[name], there[name]) for name in here)
    assert again.train_step.micro_batch_size == loop.train_step.micro_batch_size
    assert torch.equal(again.train_step.batches.at(9)[0], loop.train_step.batches.at(9)[0])


def test_where_the_memory_does_not_suffice_for_the_trial_the_plan_has_fewer_rows(put_together, monkeypatch):
    def choose(model, batch, *_, **__):
        if len(batch[0]) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return assembly.Variant(), loss_function(model, assembly.Variant()), 1.0

    monkeypatch.setattr(assembly, "choose_variant", choose)
    loop, heard, *_ = put_together()
    assert [event.micro_batch_size for event in heard.of(MicroBatchHalved)] == [2, 1]
    assert heard.of(Planned)[0].micro_batch_size == loop.train_step.micro_batch_size == 1


def test_a_run_whose_last_step_is_moved_follows_the_schedule_of_a_run_of_so_many(put_together):
    loop, *_ = put_together(steps=10)
    loop.progress.step = 8
    moved = extend(loop, 20)
    assert (moved.old_steps, moved.new_steps, loop.progress.steps) == (10, 20, 20)
    assert moved.old_fraction < moved.new_fraction == pytest.approx(loop.learning_rate_fraction(9))
    rates = [loop.learning_rate_fraction(step) for step in range(1, 21)]
    assert rates == [learning_rate_fraction(step, 20, loop.schedule) for step in range(1, 21)]
    assert extend(loop, 20) is extend(loop, None) is None
