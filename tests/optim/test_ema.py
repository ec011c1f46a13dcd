import pytest
import torch
from torch import nn

from pellucid.errors import ConfigError, RunFolderError
from pellucid.nn import TransformerLM
from pellucid.optim import WeightAverage
from tests.train.small_run import small_model


def move(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)


def averaged(model, average):
    with average.swapped():
        return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 0.999])
def test_the_average_is_the_weighted_mean_of_all_weights_so_far_in_float64(decay):
    model = small_model()
    average, past = WeightAverage(model, decay), []
    for step in range(20):
        move(model, step)
        average.update()
        past.append({name: parameter.detach().double() for name, parameter in model.named_parameters()})
    shares = [decay ** (len(past) - 1 - i) for i in range(len(past))]
    for name, mean in averaged(model, average).items():
        expected = sum(share * weights[name] for share, weights in zip(shares, past, strict=True)) / sum(shares)
        torch.testing.assert_close(mean.double(), expected, rtol=1e-5, atol=1e-6)  # 20 roundings to float32


def test_the_initial_weights_leave_no_trace():
    model = small_model()
    average = WeightAverage(model, 0.999)
    move(model, 1)
    average.update()
    for name, mean in averaged(model, average).items():
        assert torch.equal(mean, model.get_parameter(name))


def test_afterwards_the_model_has_its_own_weights_bit_for_bit_even_after_an_error():
    model = small_model()
    average = WeightAverage(model, 0.9)
    for step in range(3):
        move(model, step)
        average.update()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    def compute_with_it():
        with average.swapped():
            assert not torch.equal(model.token_embedding.weight, before["token_embedding.weight"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compute_with_it()
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def test_tied_weights_have_one_average_and_stay_tied():
    model = small_model(tie_embeddings=True)
    average = WeightAverage(model, 0.9)
    move(model, 0)
    average.update()
    assert "lm_head.weight" not in average.averages
    with average.swapped():
        assert model.lm_head.weight is model.token_embedding.weight
    assert model.lm_head.weight is model.token_embedding.weight


def test_weights_are_changed_where_they_lie_so_that_an_optimizer_sees_them():
    model = small_model()
    average = WeightAverage(model, 0.9)
    places = [parameter.data_ptr() for parameter in model.parameters()]
    with average.swapped():
        assert [parameter.data_ptr() for parameter in model.parameters()] == places
    assert [parameter.data_ptr() for parameter in model.parameters()] == places


def test_an_average_that_is_loaded_goes_on_as_if_it_had_never_stopped():
    model = small_model()
    straight = WeightAverage(model, 0.9)
    for step in range(3):
        move(model, step)
        straight.update()
    again = WeightAverage(model, 0.9)
    again.load_state_dict({name: tensor.clone() for name, tensor in straight.state_dict().items()})
    move(model, 3)
    straight.update()
    again.update()
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in straight.state_dict().items())


def test_the_state_of_another_model_is_refused_by_name():
    state = WeightAverage(small_model(), 0.9).state_dict()
    with pytest.raises(RunFolderError, match=r"token_embedding\.weight"):
        WeightAverage(small_model(vocab_size=25), 0.9).load_state_dict(state)
    state.pop("final_norm.weight")
    with pytest.raises(RunFolderError, match=r"final_norm\.weight"):
        WeightAverage(small_model(), 0.9).load_state_dict(state)


def test_weights_in_bfloat16_are_averaged_in_float32():
    model = nn.Linear(1, 1, bias=False, dtype=torch.bfloat16)
    average = WeightAverage(model, 0.999)
    for weight in [1.0] * 1000 + [2.0] * 2:
        nn.init.constant_(model.weight, weight)
        average.update()
    assert 1.002 < average.averages["weight"].item() < 1.004  # bfloat16 has nothing between 1 and 1.0078


@pytest.mark.parametrize("decay", [-0.1, 1.0, float("nan")])
def test_a_decay_outside_its_range_is_refused(decay):
    with pytest.raises(ConfigError, match=r"0\.99"):
        WeightAverage(nn.Linear(1, 1), decay)


def test_a_model_without_trainable_weights_has_an_average_of_nothing():
    model: TransformerLM = small_model().requires_grad_(False)
    average = WeightAverage(model, 0.9)
    average.update()
    assert averaged(model, average).keys() == dict(model.named_parameters()).keys()
