from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from pellucid.model_config import ModelConfig
from pellucid.nn import GEGLU, GeluFeedForward, LayerNorm, Relu2FeedForward, RMSNorm, SiluFeedForward, SwiGLU
from pellucid.nn.block import TransformerBlock, make_feed_forward, make_norm

CONFIG = ModelConfig(d_model=16, num_heads=2, context_length=8)
norms = pytest.mark.parametrize("norm", ["rms", "layer", "none"])


def _block(**choices) -> TransformerBlock:
    block = TransformerBlock(replace(CONFIG, **choices)).double()
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.3)
    return block


def _input():
    return torch.randn(2, 5, 16, dtype=torch.float64)


@norms
def test_pre_norms_what_a_part_reads(norm):
    block, x = _block(norm_placement="pre", norm=norm), _input()
    y = x + block.attention(block.attention_norm(x))
    torch.testing.assert_close(block(x), y + block.feed_forward(block.feed_forward_norm(y)))


@norms
def test_post_norms_the_sum(norm):
    block, x = _block(norm_placement="post", norm=norm), _input()
    y = block.attention_norm(x + block.attention(x))
    torch.testing.assert_close(block(x), block.feed_forward_norm(y + block.feed_forward(y)))


@norms
def test_output_norms_what_a_part_gives(norm):
    block, x = _block(norm_placement="output", norm=norm), _input()
    y = x + block.attention_output_norm(block.attention(x))
    torch.testing.assert_close(block(x), y + block.feed_forward_output_norm(block.feed_forward(y)))


@norms
def test_sandwich_norms_both(norm):
    block, x = _block(norm_placement="sandwich", norm=norm), _input()
    y = x + block.attention_output_norm(block.attention(block.attention_norm(x)))
    z = y + block.feed_forward_output_norm(block.feed_forward(block.feed_forward_norm(y)))
    torch.testing.assert_close(block(x), z)


def test_a_post_block_without_order_is_torchs_encoder_layer():
    """The original Transformer's block, an independent implementation of it, weights carried across."""
    config = replace(
        CONFIG,
        norm="layer",
        norm_epsilon=1e-5,
        norm_placement="post",
        feed_forward="gelu",
        positions="none",
        qkv_bias=True,
        attention_output_bias=True,
        feed_forward_bias=True,
    )
    for placement in ("post", "pre"):
        block = _block(**{**vars(config), "norm_placement": placement})
        theirs = nn.TransformerEncoderLayer(
            16, 2, config.d_ff, 0.0, functional.gelu, batch_first=True, norm_first=placement == "pre"
        ).double()
        names = {
            "self_attn.in_proj_": "attention.query_key_value.",
            "self_attn.out_proj.": "attention.output.",
            "linear1.": "feed_forward.up.",
            "linear2.": "feed_forward.down.",
            "norm1.": "attention_norm.",
            "norm2.": "feed_forward_norm.",
        }
        ours = block.state_dict()
        theirs.load_state_dict(
            {there + end: ours[here + end] for there, here in names.items() for end in ("weight", "bias")}
        )
        x = _input()
        hidden = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
        torch.testing.assert_close(block(x), theirs(x, src_mask=hidden))


@pytest.mark.parametrize(
    ("placement", "names"),
    [
        ("pre", {"attention_norm", "feed_forward_norm"}),
        ("post", {"attention_norm", "feed_forward_norm"}),
        ("output", {"attention_output_norm", "feed_forward_output_norm"}),
        (
            "sandwich",
            {"attention_norm", "feed_forward_norm", "attention_output_norm", "feed_forward_output_norm"},
        ),
    ],
)
def test_a_placement_has_the_norms_it_uses_and_no_others(placement, names):
    children = {name for name, _ in TransformerBlock(replace(CONFIG, norm_placement=placement)).named_children()}
    assert children == {"attention", "feed_forward"} | names


@pytest.mark.parametrize(
    ("choice", "kind"),
    [
        ({"feed_forward": "swiglu"}, SwiGLU),
        ({"feed_forward": "geglu"}, GEGLU),
        ({"feed_forward": "gelu"}, GeluFeedForward),
        ({"feed_forward": "silu"}, SiluFeedForward),
        ({"feed_forward": "relu2"}, Relu2FeedForward),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_the_config_names_the_feed_forward_part(choice, kind, bias):
    part = make_feed_forward(replace(CONFIG, d_ff=40, feed_forward_bias=bias, **choice))
    assert type(part) is kind
    assert part.up.weight.shape == (40, 16)
    assert (part.down.bias is not None) == bias


@pytest.mark.parametrize("kind", ["gelu", "geglu"])
def test_the_config_names_the_gelu(kind):
    exact, tanh = (make_feed_forward(replace(CONFIG, feed_forward=kind, gelu=gelu)) for gelu in ("exact", "tanh"))
    x = torch.tensor([1.0])
    torch.testing.assert_close(exact.activation(x), functional.gelu(x))
    torch.testing.assert_close(tanh.activation(x), functional.gelu(x, approximate="tanh"))
    assert exact.activation(x) != tanh.activation(x)


def test_the_config_names_the_norm():
    rms = make_norm(replace(CONFIG, norm_epsilon=0.5, norm_offset=1.0))
    layer = make_norm(replace(CONFIG, norm="layer", norm_bias=False))
    assert (type(rms), rms.epsilon, rms.offset) == (RMSNorm, 0.5, 1.0)
    assert (type(layer), layer.bias) == (LayerNorm, None)
    assert not list(make_norm(replace(CONFIG, norm="none")).parameters())


@pytest.mark.parametrize("placement", ["pre", "post", "output", "sandwich"])
def test_dropout_reaches_both_parts_in_training_alone(placement):
    block, x = _block(dropout=0.5, norm_placement=placement), _input()
    assert not torch.allclose(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


def test_dropout_keeps_the_mean_of_what_a_part_adds():
    block, x = _block(dropout=0.25), torch.randn(16, dtype=torch.float64).expand(4000, 1, 16)
    nn.init.zeros_(block.feed_forward.down.weight)  # the attention's part alone: linear in what is dropped
    added = block(x) - x
    expected = (block.eval()(x) - x)[0]
    assert (added.mean(0) - expected).abs().max() < 0.05 * expected.abs().max()
    nothing = (added == 0).double().mean()  # the output was dropped, or both heads' only weight
    assert nothing == pytest.approx(0.25 + 0.75 * 0.25**2, abs=0.02)
