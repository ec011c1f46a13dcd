import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from pellucid.errors import ConfigError, ShapeError
from pellucid.model_config import RopeScaling
from pellucid.nn import RotaryPositions, rope, rotary_frequencies

LLAMA3 = RopeScaling(kind="llama3", factor=8.0, original_context_length=512)
positions_up_to_600 = st.integers(0, 600)


def _turned_as_complex_numbers(x: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    """The paper's own form, equation 34: a pair is a complex number, turning it is multiplying by e^(i m theta_k)."""
    first, second = x.double().chunk(2, dim=-1)
    frequencies = torch.tensor([theta ** (-2 * k / x.shape[-1]) for k in range(x.shape[-1] // 2)], dtype=torch.float64)
    turn = torch.exp(1j * positions[..., None].double() * frequencies)
    turned = torch.complex(first, second) * turn
    return torch.cat([turned.real, turned.imag], dim=-1)


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
def test_turning_a_pair_is_multiplying_a_complex_number(theta, leading):
    x, positions = torch.randn(*leading, 5, 8), torch.tensor([0, 600, 3, 3, 77])
    expected = _turned_as_complex_numbers(x, positions, theta).float()
    torch.testing.assert_close(RotaryPositions(8, 601, theta)(x, positions), expected)


@given(m=positions_up_to_600, n=positions_up_to_600, shift=positions_up_to_600)
def test_the_product_of_a_query_and_a_key_depends_on_their_distance_alone(m, n, shift):
    rotary, (query, key) = RotaryPositions(16, 1201), torch.randn(2, 1, 16, dtype=torch.float64)

    def product(m, n):
        return rotary(query, torch.tensor([m])) @ rotary(key, torch.tensor([n])).T

    torch.testing.assert_close(product(m + shift, n + shift), product(m, n), rtol=0, atol=1e-5)


def test_distances_are_told_apart():
    rotary, query = RotaryPositions(16, 600), torch.randn(1, 16)
    turned = rotary(query.expand(600, 16))
    assert torch.pdist(turned).min() > 1e-3


@given(position=positions_up_to_600)
def test_a_turn_changes_no_length(position):
    x = torch.randn(1, 16)
    torch.testing.assert_close(RotaryPositions(16, 601)(x, torch.tensor([position])).norm(), x.norm())


def test_position_zero_is_not_turned():
    x = torch.randn(3, 1, 16)
    assert torch.equal(RotaryPositions(16, 4)(x), x)


def test_positions_are_counted_from_zero_unless_given():
    rotary, x = RotaryPositions(8, 6), torch.randn(2, 6, 8)
    assert torch.equal(rotary(x), rotary(x, torch.arange(6)))


def test_each_row_may_have_positions_of_its_own():
    rotary, x = RotaryPositions(8, 20), torch.randn(2, 3, 4, 8)  # batch, head, position, feature
    positions = torch.tensor([[0, 1, 2, 3], [19, 3, 3, 7]])
    together = rotary(x, positions[:, None])
    assert torch.equal(together, torch.stack([rotary(row, own) for row, own in zip(x, positions, strict=True)]))


def test_its_gradient_turns_back():
    rotary, x = RotaryPositions(8, 6), torch.randn(6, 8, requires_grad=True)
    upstream = torch.randn(6, 8)
    (gradient,) = torch.autograd.grad(rotary(x), x, upstream)
    torch.testing.assert_close(rotary(gradient), upstream)  # the transpose of a turn is its inverse


# --- frequencies


def _theirs(kind: str, theta: float, **extra) -> torch.Tensor:
    config = LlamaConfig(
        hidden_size=128,
        num_attention_heads=2,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": kind, "rope_theta": theta, **extra},
    )
    frequencies, _ = ROPE_INIT_FUNCTIONS[kind](config, "cpu")
    return frequencies


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
@pytest.mark.parametrize(
    ("scaling", "extra"),
    [
        (RopeScaling(kind="linear", factor=8.0), {"factor": 8.0}),
        (
            RopeScaling(kind="llama3", factor=32.0, original_context_length=1024),
            {
                "factor": 32.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 1024,
            },
        ),
        (
            RopeScaling(
                kind="llama3",
                factor=8.0,
                low_frequency_factor=2.0,
                high_frequency_factor=3.0,
                original_context_length=8192,
            ),
            {
                "factor": 8.0,
                "low_freq_factor": 2.0,
                "high_freq_factor": 3.0,
                "original_max_position_embeddings": 8192,
            },
        ),
    ],
    ids=["linear", "llama3", "llama3 with a narrow band"],
)
def test_scaled_frequencies_are_transformers(theta, scaling, extra):
    ours = rotary_frequencies(64, theta, scaling)
    torch.testing.assert_close(ours.float(), _theirs(scaling.kind, theta, **extra), rtol=1e-6, atol=0)


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
def test_frequencies_are_the_papers(theta):
    expected = [theta ** (-2 * i / 64) for i in range(32)]
    assert rotary_frequencies(64, theta).tolist() == pytest.approx(expected, rel=1e-14)


def test_llama3_keeps_fast_frequencies_and_divides_slow_ones():
    ratio = rotary_frequencies(64, 10000.0, LLAMA3) / rotary_frequencies(64, 10000.0)
    assert ratio[0] == 1
    assert ratio[-1] == pytest.approx(1 / 8)
    assert (ratio.diff() <= 0).all()


def test_an_unknown_scaling_is_refused_by_name(no_shape_checks):
    with pytest.raises(ConfigError, match=r"kind to be one of linear \| llama3, but got 'yarn'"):
        RopeScaling(kind="yarn", factor=2.0)


# --- number types and devices


def _error(rotary: RotaryPositions) -> float:
    angles = torch.outer(torch.arange(1025, dtype=torch.float64), rotary_frequencies(32)).repeat(1, 2)
    sign = torch.tensor([-1.0] * 16 + [1.0] * 16, dtype=torch.float64)
    cosine_error = (rotary.cosine.double() - angles.cos()).abs().max()
    return max(cosine_error.item(), (rotary.signed_sine.double() - sign * angles.sin()).abs().max().item())


CASTS = {
    "bfloat16": lambda module: module.to(torch.bfloat16),
    "half": lambda module: module.half(),
    "back and forth": lambda module: module.bfloat16().float(),
    "double": lambda module: module.double(),
    "twice": lambda module: module.to(torch.bfloat16).to(torch.bfloat16),
    "emptied": lambda module: module.to_empty(device="cpu"),
    "copied": lambda module: copy.deepcopy(module.bfloat16()),
}


@pytest.mark.parametrize("cast", CASTS)
def test_no_cast_touches_the_tables(cast):
    rotary = RotaryPositions(32, 1025)
    model = CASTS[cast](torch.nn.ModuleList([rotary, rotary, torch.nn.Linear(2, 2)]))  # shared by two layers
    assert model[0].cosine.dtype == model[0].signed_sine.dtype == torch.float32
    assert _error(model[0]) < 1e-7  # half a unit in float32's last place; in bfloat16 it would be 2e-3 to 2


@pytest.mark.parametrize("cast", CASTS)
def test_no_two_positions_share_a_row(cast):
    rotary = CASTS[cast](torch.nn.ModuleList([RotaryPositions(32, 1025)]))[0]
    rows = torch.cat([rotary.cosine, rotary.signed_sine], dim=-1)
    assert len(rows.unique(dim=0)) == 1025


def test_tables_are_made_when_leaving_the_meta_device():
    with torch.device("meta"):
        rotary = RotaryPositions(32, 1025)
    assert rotary.cosine.is_meta
    assert _error(rotary.to_empty(device="cpu")) < 1e-7


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_narrow_input_is_turned_in_float32_and_rounded_once(dtype):
    rotary, x = RotaryPositions(16, 1025).to(dtype), torch.randn(1025, 16).to(dtype)
    y = rotary(x)
    assert y.dtype == dtype
    assert torch.equal(y, rotary(x.float()).to(dtype))


def test_tables_are_not_saved():
    assert not RotaryPositions(8, 4).state_dict()


# --- long tables grow


@pytest.fixture
def growing(monkeypatch):
    monkeypatch.setattr(rope, "WHOLE", 8 * 16)
    rotary = RotaryPositions(8, 1000)
    assert len(rotary.cosine) == 16
    return rotary


WHOLE_TABLES = RotaryPositions(8, 1000)


@pytest.mark.parametrize("length", [1, 16, 17, 40, 1000])
def test_a_long_table_grows_with_the_sequence(growing, length):
    x = torch.randn(2, length, 8)
    assert torch.equal(growing(x), WHOLE_TABLES(x))
    assert len(growing.cosine) < 1000 or length == 1000


@pytest.mark.parametrize("last", [3, 16, 200, 999])
def test_a_long_table_grows_with_the_positions(growing, last):
    x, positions = torch.randn(2, 8), torch.tensor([0, last])
    assert torch.equal(growing(x, positions), WHOLE_TABLES(x, positions))
    x = torch.randn(2, 0, 8)
    assert growing(x, torch.zeros(0, dtype=torch.int64)).shape == x.shape


@pytest.mark.parametrize("position", [1000, -1])
def test_a_long_table_grows_no_further_than_the_context(growing, position):
    with pytest.raises(ShapeError, match=rf"0 to \d+ \(context_length=\d+\), but got position {position}:"):
        growing(torch.randn(2, 8), torch.tensor([0, position]))


def test_what_grew_while_generating_serves_training(growing):
    with torch.inference_mode():
        growing(torch.randn(40, 8))
    x = torch.randn(40, 8, requires_grad=True)
    growing(x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_long_table_grows_in_a_compiled_graph(growing, no_shape_checks, backend):
    x = torch.randn(100, 8)
    compiled = torch.compile(growing, backend=backend, fullgraph=True, dynamic=False)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), WHOLE_TABLES(x))
    assert torch.equal(growing.cosine, WHOLE_TABLES.cosine[:100])


@pytest.mark.parametrize("cast", ["bfloat16", "emptied", "copied"])
def test_a_cast_table_grows_as_exactly(growing, cast):
    growing.reach(40)
    cast = CASTS[cast](torch.nn.ModuleList([growing]))[0]
    cast.reach(1000)
    assert torch.equal(cast.cosine, WHOLE_TABLES.cosine)
    assert torch.equal(cast.signed_sine, WHOLE_TABLES.signed_sine)


# --- refusals


def test_an_odd_head_cannot_be_turned():
    with pytest.raises(ShapeError, match="even d_head, to be turned in pairs, but got 7"):
        RotaryPositions(7, 4)


@pytest.mark.parametrize("length", [None, 0, -1, 2.5])
def test_rope_needs_its_length(length, no_shape_checks):
    with pytest.raises(ShapeError, match=f"number of positions that rope has tables for, but got {length}"):
        RotaryPositions(8, length)


@pytest.mark.parametrize("position", [4, 1000, -1])
def test_a_position_outside_the_tables_is_refused_by_both_numbers(position):
    with pytest.raises(ShapeError, match=rf"0 to 3 \(context_length=4\), but got position {position}:"):
        RotaryPositions(8, 4)(torch.randn(2, 8), torch.tensor([0, position]))


def test_a_sequence_longer_than_the_tables_is_refused_by_both_numbers():
    with pytest.raises(ShapeError, match=r"0 to 3 \(context_length=4\), but got position 4:"):
        RotaryPositions(8, 4)(torch.randn(5, 8))
