import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import ConfigError
from pellucid.optim.muon import QUINTIC, Muon, orthogonalise, update_factor

SHAPES = [(24, 24), (16, 40), (40, 16), (1, 7), (7, 1)]


def orthogonalised_naively(matrix, steps=5):
    """The definition, one matrix at a time."""
    a, b, c = QUINTIC
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def parameters_of(shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def step_with_random_gradients(optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizer.step()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7])
def test_orthogonalise_is_the_naive_loop(shape, steps):
    matrix = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(
        orthogonalise(matrix, steps), orthogonalised_naively(matrix, steps), rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_orthogonalise_is_the_naive_loop_in_float32(shape):
    matrix = torch.randn(shape)
    # 5e-6: rounding of 1e-7, grown by the polynomial's slope of 3.4 in the smallest directions
    torch.testing.assert_close(orthogonalise(matrix), orthogonalised_naively(matrix), rtol=0, atol=5e-6)


@pytest.mark.parametrize("shape", [(48, 48), (48, 128)])
def test_float32_holds_up_where_singular_values_span_eight_decades(shape):
    rows, columns = shape
    left, _ = torch.linalg.qr(torch.randn(rows, rows, dtype=torch.float64))
    right, _ = torch.linalg.qr(torch.randn(columns, rows, dtype=torch.float64))
    matrix = (left * torch.logspace(0, -8, rows, dtype=torch.float64)) @ right.T
    ours, exact = orthogonalise(matrix.float()).double(), orthogonalised_naively(matrix)
    assert (ours - exact).norm() / exact.norm() < 3e-5  # one Gram matrix for all five steps gives 2e-4


def test_orthogonalise_makes_every_direction_about_equally_long():
    singular_values = torch.linalg.svdvals(orthogonalise(torch.randn(32, 96)))
    assert singular_values.min() > 0.6
    assert singular_values.max() < 1.3


def test_a_stack_of_matrices_is_each_matrix_alone():
    stack = torch.randn(2, 3, 8, 20)
    for index in itertools.product(range(2), range(3)):
        torch.testing.assert_close(orthogonalise(stack)[index], orthogonalise(stack[index]), rtol=0, atol=1e-6)


def test_the_transpose_goes_through():
    matrix = torch.randn(6, 20)
    torch.testing.assert_close(orthogonalise(matrix.T), orthogonalise(matrix).T)


@given(size=st.floats(1e-4, 1e8))
def test_the_size_of_a_gradient_does_not_matter(size):
    matrix = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(orthogonalise(size * matrix), orthogonalise(matrix), rtol=1e-4, atol=1e-5)


def test_a_matrix_of_zeros_stays_zero():
    assert orthogonalise(torch.zeros(4, 9)).eq(0).all()


@pytest.mark.parametrize(
    ("given", "computed"),
    [(torch.bfloat16, torch.float32), (torch.float16, torch.float32), (torch.float64, torch.float64)],
)
def test_it_iterates_in_float32_or_wider(given, computed):
    assert orthogonalise(torch.randn(4, 9).to(given)).dtype == computed


def test_bfloat16_iterations_are_near_the_float32_ones():
    matrix = torch.randn(24, 64)
    coarse = orthogonalise(matrix, precision="bfloat16")
    assert coarse.dtype == torch.float32
    torch.testing.assert_close(coarse, orthogonalise(matrix), rtol=0, atol=0.05)  # eight bits of mantissa, five steps


@pytest.mark.parametrize("update_scale", ["original", "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("shape", [(24, 24), (16, 40), (40, 16)])
def test_muon_is_torchs_muon_within_its_bfloat16(shape, nesterov, update_scale):
    (ours,), (theirs,) = parameters_of([shape]), parameters_of([shape])
    start = ours.detach().clone()
    settings = {"lr": 0.02, "weight_decay": 0.1, "momentum": 0.9, "nesterov": nesterov}
    our_optimizer = Muon([ours], update_scale=update_scale, **settings)
    their_optimizer = torch.optim.Muon([theirs], adjust_lr_fn=update_scale, **settings)
    for seed in range(5):
        step_with_random_gradients(our_optimizer, seed)
        step_with_random_gradients(their_optimizer, seed)
    difference, distance = (ours - theirs).norm(), (theirs - start).norm()
    assert difference < 0.02 * distance  # bfloat16 has 3 digits; measured 0.004 to 0.009


@pytest.mark.parametrize("shape", [(24, 24), (16, 40), (40, 16)])
def test_muon_is_the_update_rule_written_out(shape):
    (parameter,) = parameters_of([shape])
    expected, mean = parameter.detach().clone(), torch.zeros(shape)
    optimizer = Muon([parameter], lr=0.02, weight_decay=0.1, momentum=0.9)
    for seed in range(5):
        step_with_random_gradients(optimizer, seed)
        gradient = parameter.grad
        mean = 0.9 * mean + 0.1 * gradient
        direction = orthogonalised_naively(0.1 * gradient + 0.9 * mean)
        expected = expected * (1 - 0.02 * 0.1) - 0.02 * max(1, shape[0] / shape[1]) ** 0.5 * direction
    torch.testing.assert_close(parameter.detach(), expected, rtol=0, atol=2e-6)


def test_slices_of_a_fused_matrix_move_as_matrices_of_their_own():
    fused = torch.nn.Parameter(torch.randn(40, 16))
    apart = [torch.nn.Parameter(part.detach().clone()) for part in fused.split((16, 8, 16))]
    one, three = Muon([{"params": [fused], "row_slices": (16, 8, 16)}]), Muon(apart)
    for _ in range(3):
        fused.grad = torch.randn_like(fused)
        for part, gradient in zip(apart, fused.grad.split((16, 8, 16)), strict=True):
            part.grad = gradient.clone()
        one.step()
        three.step()
    torch.testing.assert_close(fused.detach(), torch.cat([part.detach() for part in apart]), rtol=0, atol=1e-6)


def test_a_loud_map_does_not_silence_its_neighbour_in_a_fused_matrix():
    fused = torch.nn.Parameter(torch.zeros(16, 16))
    gradient = torch.randn(16, 16)
    gradient[:8] *= 1e4
    fused.grad = gradient
    Muon([{"params": [fused], "row_slices": (8, 8)}], lr=1.0).step()
    assert fused[8:].norm() > 0.5 * fused[:8].norm()


def test_many_matrices_at_once_move_as_each_alone(monkeypatch):
    monkeypatch.setattr("pellucid.optim.muon.CPU_STACK", 1500)  # so that some shapes are cut into several stacks
    shapes = [(16, 40), (24, 24), (40, 16), (16, 40), (24, 24), (40, 16), (24, 24), (24, 24)]
    together, alone = parameters_of(shapes), parameters_of(shapes)
    optimizers = [Muon([parameter]) for parameter in alone]
    optimizer = Muon(together)
    for _ in range(2):
        for parameter, twin in zip(together, alone, strict=True):
            parameter.grad = torch.randn_like(parameter)
            twin.grad = parameter.grad.clone()
        optimizer.step()
        for single in optimizers:
            single.step()
    for parameter, twin in zip(together, alone, strict=True):
        torch.testing.assert_close(parameter, twin, rtol=0, atol=1e-6)


def test_groups_keep_their_own_learning_rates():
    fast, slow = parameters_of([(8, 8)]), parameters_of([(8, 8)])
    start = fast[0].detach().clone()
    optimizer = Muon([{"params": fast, "lr": 0.1}, {"params": slow, "lr": 0.01}])
    fast[0].grad = slow[0].grad = torch.randn(8, 8)
    optimizer.step()
    torch.testing.assert_close(fast[0] - start, 10 * (slow[0] - start), rtol=1e-4, atol=1e-6)


def test_a_parameter_without_a_gradient_stays():
    moved, kept = parameters_of([(6, 6), (6, 6)])
    before = kept.detach().clone()
    optimizer = Muon([moved, kept], weight_decay=0.5)
    moved.grad = torch.randn(6, 6)
    optimizer.step()
    assert kept.equal(before)
    assert kept not in optimizer.state


def test_a_gradient_of_zeros_moves_nothing():
    (parameter,) = parameters_of([(6, 6)])
    before = parameter.detach().clone()
    parameter.grad = torch.zeros(6, 6)
    Muon([parameter]).step()
    assert parameter.equal(before)


def test_torchs_own_state_dict_resumes_bit_for_bit():
    straight, resumed = parameters_of([(16, 40), (24, 24)]), parameters_of([(16, 40), (24, 24)])
    optimizer, first = Muon(straight, lr=0.05), Muon(resumed, lr=0.05)
    for seed in range(2):
        step_with_random_gradients(optimizer, seed)
        step_with_random_gradients(first, seed)
    second = Muon(resumed, lr=0.7)
    second.load_state_dict(first.state_dict())
    for seed in range(2, 4):
        step_with_random_gradients(optimizer, seed)
        step_with_random_gradients(second, seed)
    assert all(one.equal(other) for one, other in zip(straight, resumed, strict=True))


def test_momentum_of_bfloat16_weights_is_float32():
    parameter = torch.nn.Parameter(torch.randn(8, 8, dtype=torch.bfloat16))
    parameter.grad = torch.randn(8, 8).bfloat16()
    optimizer = Muon([parameter], lr=0.5)
    optimizer.step()
    assert optimizer.state[parameter]["momentum"].dtype == torch.float32
    assert parameter.dtype == torch.bfloat16


def test_a_closure_is_evaluated_with_gradients_and_its_value_returned():
    (parameter,) = parameters_of([(4, 4)])

    def closure():
        loss = (parameter**2).sum()
        loss.backward()
        return loss

    before = parameter.detach().clone()
    assert Muon([parameter]).step(closure).item() == pytest.approx((before**2).sum().item())
    assert not parameter.equal(before)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), ()])
def test_what_is_not_a_matrix_is_refused_with_its_shape(shape):
    with pytest.raises(ConfigError, match="matrices"):
        Muon([torch.nn.Parameter(torch.zeros(shape))])


def test_slices_that_do_not_add_up_are_refused_with_both_numbers():
    with pytest.raises(ConfigError, match=r"12 rows.*\(4, 4\), which is 8"):
        Muon([{"params": [torch.nn.Parameter(torch.zeros(12, 4))], "row_slices": (4, 4)}])


@pytest.mark.parametrize("settings", [{"update_scale": "loud"}, {"precision": "float8"}])
def test_an_unknown_choice_is_refused_by_name(settings):
    with pytest.raises(ConfigError, match=next(iter(settings.values()))):
        Muon([torch.nn.Parameter(torch.zeros(2, 2))], **settings)


def test_update_factors_are_the_published_ones():
    assert update_factor("original", 64, 16) == 2
    assert update_factor("original", 16, 64) == 1
    assert update_factor("match_rms_adamw", 16, 64) == pytest.approx(1.6)
    assert update_factor("none", 64, 16) == 1
