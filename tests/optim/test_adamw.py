import pytest
import torch

from pellucid.errors import ConfigError
from pellucid.optim.adamw import AdamW

SETTINGS = {"lr": 1e-3, "weight_decay": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}


def regress(optimizer_class, steps=300, **settings):
    torch.manual_seed(42)
    model = torch.nn.Linear(3, 2)
    optimizer = optimizer_class(model.parameters(), **SETTINGS | settings)
    for _ in range(steps):
        x = torch.randn(8, 3)
        optimizer.zero_grad()
        (model(x) - torch.stack([x[:, 0] + x[:, 1], -x[:, 2]], dim=1)).square().sum().backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_adamw_is_torchs_up_to_the_order_of_decay():
    torch.testing.assert_close(regress(AdamW), regress(torch.optim.AdamW), rtol=0, atol=2e-5)


def test_without_decay_and_epsilon_it_is_torchs_to_rounding():
    plain = {"weight_decay": 0.0, "eps": 0.0}
    torch.testing.assert_close(regress(AdamW, **plain), regress(torch.optim.AdamW, **plain), rtol=1e-5, atol=1e-6)


def test_adamw_is_the_course_algorithm_written_out_in_plain_numbers():
    weight = torch.nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    optimizer = AdamW([weight], lr=0.1, weight_decay=0.3, betas=(0.8, 0.9), eps=0.01)
    w, m, v = 2.0, 0.0, 0.0
    for t, gradient in enumerate([0.5, -2.0, 3.0], start=1):
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        m = 0.8 * m + 0.2 * gradient
        v = 0.9 * v + 0.1 * gradient**2
        w = w - 0.1 * (1 - 0.9**t) ** 0.5 / (1 - 0.8**t) * m / (v**0.5 + 0.01)
        w = w - 0.1 * 0.3 * w
    assert weight.item() == pytest.approx(w, rel=1e-12)


def test_weights_without_a_gradient_stay():
    weight = torch.nn.Parameter(torch.ones(2))
    AdamW([weight], lr=0.1, weight_decay=0.5).step()
    assert weight.equal(torch.ones(2))


def test_decay_takes_hold_where_the_gradient_is_zero():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.zeros(2)
    AdamW([weight], lr=0.1, weight_decay=0.5).step()
    torch.testing.assert_close(weight.detach(), torch.full((2,), 0.95))


def test_its_state_resumes_bit_for_bit():
    one, two = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    first, second = AdamW([one]), AdamW([two])
    one.grad = two.grad = torch.randn(3)
    first.step()
    second.step()
    resumed = AdamW([two], lr=0.7)
    resumed.load_state_dict(second.state_dict())
    one.grad = two.grad = torch.randn(3)
    first.step()
    resumed.step()
    assert one.equal(two)


def test_a_closure_is_evaluated():
    weight = torch.nn.Parameter(torch.ones(1))

    def closure():
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert AdamW([weight]).step(closure).item() == 1


@pytest.mark.parametrize("setting", [{"lr": -1.0}, {"weight_decay": -0.1}, {"betas": (1.0, 0.9)}, {"eps": -1e-8}])
def test_a_setting_outside_its_range_is_refused(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        AdamW([torch.nn.Parameter(torch.ones(1))], **setting)
