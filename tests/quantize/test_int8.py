import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid import presets
from pellucid.nn import Linear, TransformerLM
from pellucid.quantize import Int8Linear, quantize_model, quantize_rows


@given(st.integers(1, 9), st.integers(1, 70), st.integers(0, 2**31), st.sampled_from([1e-30, 1.0, 1e4]))
def test_a_weight_is_off_by_half_a_scale_at_most(d_out, d_in, seed, size):
    weight = torch.randn(d_out, d_in, generator=torch.Generator().manual_seed(seed)) * size
    integers, scale = quantize_rows(weight)
    assert integers.abs().max() <= 127
    assert ((integers * scale[:, None] - weight).abs() <= scale[:, None] * 0.5001).all()


def test_a_row_of_zeros_stays_one():
    integers, scale = quantize_rows(torch.zeros(2, 3))
    assert not integers.any()
    assert not scale.any()


@pytest.mark.parametrize("num_tokens", [1, 5, 40])
@pytest.mark.parametrize("bias", [False, True])
def test_a_map_is_that_of_its_rounded_weights(num_tokens, bias):
    torch.manual_seed(0)
    linear = Linear(96, 40, bias=bias)
    if bias:
        torch.nn.init.normal_(linear.bias)
    in_bytes, x = Int8Linear(linear), torch.randn(2, num_tokens, 96)
    rounded = in_bytes.integers * in_bytes.scale[:, None]
    expected = torch.nn.functional.linear(x, rounded, linear.bias)
    torch.testing.assert_close(in_bytes(x), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("preset", ["llama", "gpt2", "gemma3"])
def test_a_model_in_bytes_is_close_to_what_it_was_and_a_tied_head_is_stored_once(preset):
    torch.manual_seed(0)
    config = getattr(presets, preset)(
        vocab_size=90, d_model=64, num_heads=4, num_kv_heads=4, d_head=16, d_ff=96, num_layers=3, tie_embeddings=True
    )
    model = TransformerLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.2, 0.1)
    ids = torch.randint(90, (1, 30))
    with torch.no_grad():
        before = model(ids)
        after = quantize_model(model)(ids)
    assert (after - before).abs().max() < 0.1 * before.std()
    assert not torch.equal(after, before)
    assert sum(name.endswith("integers") for name in {id(b): n for n, b in model.named_buffers()}.values()) >= 3 * 4 + 1
    assert model.token_embedding.head is model.lm_head
