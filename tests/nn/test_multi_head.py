from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from pellucid.errors import ShapeError
from pellucid.model_config import ModelConfig
from pellucid.nn import CausalMultiHeadAttention, KVCache, attention_weights, causal_mask
from pellucid.nn.linear import linear_std

PLAIN = ModelConfig(d_model=24, num_heads=4, context_length=32, positions="none")
ROPE = replace(PLAIN, positions="rope")
GEOMETRIES = [(8, 2), (6, 3), (4, 1), (8, 8)]
both_paths = pytest.mark.parametrize("fused", [False, True], ids=["written out", "fused"])


def _attention(config: ModelConfig, layer: int = 0, fused: bool = True) -> CausalMultiHeadAttention:
    """With weights large enough that attention is far from uniform."""
    attention = CausalMultiHeadAttention(config, layer)
    attention.fused = fused
    with torch.no_grad():
        for name, parameter in attention.named_parameters():
            parameter.normal_(1.0 if "norm" in name else 0.0, 0.4)
    return attention


def _by_hand(attention: CausalMultiHeadAttention, x, rotate=lambda x: x, window=None):
    """Three products, head by head, as the paper says it; key head h // group serves query head h."""
    d_head, slices = attention.d_head, attention.slices
    weights = attention.query_key_value.weight.split(slices)
    biases = [None] * 3 if attention.query_key_value.bias is None else attention.query_key_value.bias.split(slices)
    query, key, value = (functional.linear(x, w, b) for w, b in zip(weights, biases, strict=True))
    seen, heads = causal_mask(torch.arange(x.shape[-2]), x.shape[-2], window), []
    for head in range(attention.num_heads):
        shared = head // (attention.num_heads // attention.num_kv_heads)
        q = rotate(query[..., head * d_head : (head + 1) * d_head])
        k = rotate(key[..., shared * d_head : (shared + 1) * d_head])
        v = value[..., shared * d_head : (shared + 1) * d_head]
        scores = (q @ k.mT / d_head**0.5).masked_fill(~seen, -torch.inf)
        heads.append(torch.softmax(scores, -1) @ v)
    return functional.linear(torch.cat(heads, -1), attention.output.weight, attention.output.bias)


# --- the same function, said in other ways


@both_paths
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_torchs_multi_head_attention(fused, bias):
    ours = _attention(replace(PLAIN, qkv_bias=bias, attention_output_bias=bias), fused=fused)
    theirs = nn.MultiheadAttention(24, 4, bias=bias, batch_first=True)
    state = {"in_proj_weight": ours.query_key_value.weight, "out_proj.weight": ours.output.weight}
    if bias:
        state |= {"in_proj_bias": ours.query_key_value.bias, "out_proj.bias": ours.output.bias}
    theirs.load_state_dict(state)
    x = torch.randn(2, 9, 24)
    expected, _ = theirs(x, x, x, attn_mask=~causal_mask(torch.arange(9), 9), need_weights=False)
    torch.testing.assert_close(ours(x), expected, rtol=0, atol=1e-5)


@both_paths
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), GEOMETRIES)
@pytest.mark.parametrize("d_head", [4, 10])
@pytest.mark.parametrize("rope", [False, True])
def test_one_product_for_all_is_three_products_head_by_head(fused, num_heads, num_kv_heads, d_head, rope):
    config = replace(
        ROPE if rope else PLAIN, num_heads=num_heads, num_kv_heads=num_kv_heads, d_head=d_head, qkv_bias=True
    )
    attention, x = _attention(config, fused=fused).double(), torch.randn(2, 9, 24, dtype=torch.float64)
    rotate = attention.rotary if rope else lambda x: x
    torch.testing.assert_close(attention(x), _by_hand(attention, x, rotate))


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), GEOMETRIES)
def test_both_paths_agree_in_values_and_gradients(num_heads, num_kv_heads):
    config = replace(ROPE, num_heads=num_heads, num_kv_heads=num_kv_heads, d_head=6, qk_norm="head", window=5)
    attention, x = _attention(config), torch.randn(2, 9, 24)
    found = []
    for attention.fused in (False, True):
        y = attention(x)
        found.append((y, *torch.autograd.grad(y.square().sum(), attention.parameters())))
    for written, fused in zip(*found, strict=True):
        torch.testing.assert_close(fused, written, rtol=1e-4, atol=1e-3)  # gradients reach 1e3


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), GEOMETRIES)
def test_a_key_head_serves_its_group_of_query_heads_in_order(num_heads, num_kv_heads):
    attention = _attention(replace(PLAIN, num_heads=num_heads, num_kv_heads=num_kv_heads, d_head=4))
    key = torch.arange(num_kv_heads).float()[None, :, None, None].expand(1, num_kv_heads, 3, 4)
    group = num_heads // num_kv_heads
    assert attention.share_keys(key)[0, :, 0, 0].tolist() == [head // group for head in range(num_heads)]


def test_the_projections_recompute_the_weights_that_were_used():
    attention, x = _attention(replace(ROPE, num_kv_heads=2)), torch.randn(2, 9, 24)
    query, key, value = attention.project(x)
    assert (query.shape, key.shape) == ((2, 4, 9, 6), (2, 2, 9, 6))
    weights = attention_weights(query, attention.share_keys(key), causal_mask(torch.arange(9), 9))
    read = (weights @ attention.share_keys(value)).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention(x), attention.output(read))


# --- rope


def test_queries_and_keys_are_turned_values_are_not_and_every_head_alike():
    attention, x = _attention(ROPE), torch.randn(1, 9, 24)
    turned, attention.rotary = attention.project(x), None
    straight = attention.project(x)
    rotary = CausalMultiHeadAttention(ROPE).rotary
    for head in range(4):
        torch.testing.assert_close(turned[0][0, head], rotary(straight[0][0, head]))
        torch.testing.assert_close(turned[1][0, head], rotary(straight[1][0, head]))
    assert not torch.allclose(turned[0], straight[0])
    assert torch.equal(turned[2], straight[2])


@given(shift=st.integers(0, 20))
def test_only_distances_between_positions_matter(shift):
    attention, x = _attention(ROPE), torch.randn(1, 9, 24)
    moved = attention(x, positions=torch.arange(9)[None] + shift)
    torch.testing.assert_close(moved, attention(x), rtol=0, atol=1e-4)


def test_positions_may_come_in_any_order_and_differ_by_row():
    attention, x = _attention(ROPE), torch.randn(2, 5, 24)
    positions = torch.tensor([[4, 0, 31, 7, 7], [0, 1, 2, 3, 4]])
    together = attention(x, positions=positions)
    for row in range(2):
        expected = _by_hand(attention, x[row], lambda part, row=row: attention.rotary(part, positions[row]))
        torch.testing.assert_close(together[row], expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(together[1], attention(x[1]), rtol=0, atol=1e-5)


def test_rope_makes_attention_see_order_and_its_absence_leaves_it_to_the_mask():
    x = torch.randn(1, 6, 24)
    swapped = x[:, [1, 0, 2, 3, 4, 5]]
    for config, sees_order in ((PLAIN, False), (ROPE, True)):
        attention = _attention(config)
        same = torch.allclose(attention(x)[:, 2:], attention(swapped)[:, 2:], atol=1e-5)
        assert same is not sees_order


# --- choices


@pytest.mark.parametrize("qk_norm", ["head", "projection"])
def test_a_norm_makes_the_size_of_queries_and_keys_irrelevant(qk_norm):
    attention, x = _attention(replace(ROPE, qk_norm=qk_norm, norm_epsilon=1e-12)), torch.randn(1, 9, 24)
    before = attention(x)
    with torch.no_grad():
        attention.query_key_value.weight[:24] *= 7
        attention.query_key_value.weight[24:48] *= 0.1
    torch.testing.assert_close(attention(x), before, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("qk_norm", "axes"), [("head", -1), ("projection", (-3, -1))])
def test_the_norm_is_over_a_head_or_over_all_of_them(qk_norm, axes):
    attention = CausalMultiHeadAttention(replace(PLAIN, num_kv_heads=2, qk_norm=qk_norm, norm_epsilon=1e-12))
    for part in attention.project(torch.randn(1, 9, 24))[:2]:
        mean_square = part.square().mean(axes)
        torch.testing.assert_close(mean_square, torch.ones_like(mean_square))


def test_query_and_key_have_norms_of_their_own_with_the_configs_epsilon_and_offset():
    attention = CausalMultiHeadAttention(replace(PLAIN, num_kv_heads=2, qk_norm="projection", norm_offset=1.0))
    assert (attention.query_norm.weight.shape, attention.key_norm.weight.shape) == ((24,), (12,))
    assert attention.query_norm.offset == 1.0
    assert attention.query_norm.epsilon == PLAIN.norm_epsilon
    assert CausalMultiHeadAttention(PLAIN).query_norm is None


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_the_biases_of_projection_and_output_are_separate(inner, outer):
    attention = CausalMultiHeadAttention(replace(PLAIN, qkv_bias=inner, attention_output_bias=outer))
    assert (attention.query_key_value.bias is not None) == inner
    assert (attention.output.bias is not None) == outer


@both_paths
@pytest.mark.parametrize("window", [1, 3, 9, 100])
def test_a_window_hides_what_lies_before_it(fused, window):
    attention, x = _attention(replace(PLAIN, window=window), fused=fused), torch.randn(2, 9, 24)
    torch.testing.assert_close(attention(x), _by_hand(attention, x, window=window), rtol=0, atol=1e-5)


def test_a_pattern_gives_the_window_and_a_theta_of_their_own_to_local_layers():
    config = replace(ROPE, window=3, layer_pattern=("local", "global"), rope_theta_local=100.0)
    layers = [CausalMultiHeadAttention(config, layer) for layer in range(4)]
    assert [attention.window for attention in layers] == [3, None, 3, None]
    assert [attention.rotary.theta for attention in layers] == [100.0, 10000.0, 100.0, 10000.0]


@both_paths
def test_a_scale_of_its_own_multiplies_the_scores(fused):
    x = torch.randn(1, 9, 24)
    scaled, plain = _attention(replace(PLAIN, attention_scale=0.5), fused=fused), _attention(PLAIN, fused=fused)
    scaled.load_state_dict(plain.state_dict())
    with torch.no_grad():
        plain.query_key_value.weight[:24] *= 0.5 * 6**0.5
    torch.testing.assert_close(scaled(x), plain(x), rtol=0, atol=1e-5)


def test_each_slice_of_the_fused_weight_begins_as_a_matrix_of_its_own():
    config = ModelConfig(d_model=256, num_heads=16, num_kv_heads=2, d_head=32)
    attention = CausalMultiHeadAttention(config)
    for part in attention.query_key_value.weight.detach().split(attention.slices):
        assert part.std() == pytest.approx(0.9866 * linear_std(256, part.shape[0]), rel=0.03)


def test_a_head_may_be_wider_than_its_share_of_the_width():
    attention = CausalMultiHeadAttention(ModelConfig(d_model=96, num_heads=4, num_kv_heads=2, d_head=32))
    assert attention.query_key_value.weight.shape == (128 + 64 + 64, 96)
    assert attention.output.weight.shape == (96, 128)
    assert attention(torch.randn(1, 5, 96)).shape == (1, 5, 96)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (0,), (1, 2, 2)])
def test_any_leading_axes_are_sequences_side_by_side(leading):
    attention, x = _attention(replace(ROPE, num_kv_heads=2)), torch.randn(*leading, 5, 24)
    flat = attention(x.reshape(-1, 5, 24)).reshape(x.shape)
    torch.testing.assert_close(attention(x), flat)


# --- dropout (M15), refusals


@both_paths
def test_dropout_sleeps_in_evaluation_and_draws_nothing(fused):
    attention, x = _attention(replace(PLAIN, dropout=0.5), fused=fused), torch.randn(1, 9, 24)
    trained = attention(x)
    attention.eval()
    state = torch.random.get_rng_state()
    first, second = attention(x), attention(x)
    assert torch.equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not torch.allclose(trained, first)


@pytest.mark.parametrize("given", [{}, {"mask": torch.ones(1, 2, 2, dtype=torch.bool)}, {"positions": torch.arange(2)}])
def test_a_cache_needs_a_mask_and_positions(given):
    cache = KVCache(replace(PLAIN, num_layers=1), 1, 4)
    cache.advance(1)
    with pytest.raises(ShapeError, match="a mask and positions beside a cache"):
        CausalMultiHeadAttention(PLAIN)(torch.randn(1, 2, 24), cache=cache.layers[0], **given)


def test_an_empty_cache_needs_no_mask_since_all_that_is_read_is_new():
    attention, cache, x = CausalMultiHeadAttention(PLAIN), KVCache(PLAIN, 1, 4), torch.randn(1, 3, 24)
    read = attention(x, positions=torch.arange(3)[None], cache=cache.layers[0])
    torch.testing.assert_close(read, attention(x), rtol=0, atol=0)
