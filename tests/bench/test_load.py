"""What every contender is given."""

import torch

from tests.bench.small_load import small_load


def test_every_contender_begins_with_the_same_weights():
    load = small_load()
    for one, other in zip(load.model().parameters(), load.model().parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_step_sees_the_same_tokens_whoever_asks_and_another_step_others():
    load = small_load()
    assert torch.equal(load.at(3)[0], load.at(3)[0])
    assert not torch.equal(load.at(3)[0], load.at(4)[0])


def test_targets_are_inputs_one_place_on_and_ids_of_the_vocabulary():
    load = small_load(vocab_size=5)
    inputs, targets = load.at(0)
    assert inputs.shape == (load.batch_size, load.context_length)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert int(targets.min()) >= 0
    assert int(targets.max()) < 5


def test_the_tokens_can_be_learned():
    load = small_load()
    model = load.model()

    def loss(inputs, targets):
        return torch.nn.functional.cross_entropy(
            model(inputs).flatten(0, 1), targets.flatten(), reduction="sum"
        ), torch.tensor(targets.numel())

    step = load.train_step(model, loss)
    losses = [step(number, 1.0).loss for number in range(1, 41)]
    assert losses[-1] < 0.8 * losses[0]
