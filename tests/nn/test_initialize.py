import pytest
import torch

from pellucid import presets
from pellucid.errors import ConfigError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM, initialize

SIZES = {"vocab_size": 512, "d_model": 256, "num_heads": 4, "num_layers": 2, "context_length": 128}
CUT = 0.9866  # the deviation of a unit normal cut at 3


def _model(scheme: str, tied: bool = False, **choices) -> TransformerLM:
    config = ModelConfig(**SIZES, num_kv_heads=2, positions="learned", qkv_bias=True, tie_embeddings=tied, **choices)
    model = TransformerLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)  # whatever is left at 7 was forgotten
    return initialize(model, scheme, seed=0)


def _deviations(model: TransformerLM) -> dict[str, float]:
    block = model.blocks[1]
    query, key, value = block.attention.query_key_value.weight.split(block.attention.slices)
    weights = {
        "token": model.token_embedding.weight,
        "position": model.position_embedding.weight,
        "query": query,
        "key": key,
        "value": value,
        "up": block.feed_forward.up.weight,
        "output": block.attention.output.weight,
        "down": block.feed_forward.down.weight,
        "head": model.lm_head.weight,
    }
    if model.config.is_gated:
        weights["gate"] = block.feed_forward.gate.weight
    return {name: weight.detach().std().item() / CUT for name, weight in weights.items()}


def _glorot(d_in: int, d_out: int) -> float:
    return (2 / (d_in + d_out)) ** 0.5


D_FF = 704  # of the default: 8/3 of 256, up to a multiple of 32
TABLE = {  # the docstring's, in numbers
    ("course", False): {
        "token": 1,
        "position": 1,
        "query": _glorot(256, 256),
        "key": _glorot(256, 128),
        "value": _glorot(256, 128),
        "gate": _glorot(256, D_FF),
        "up": _glorot(256, D_FF),
        "output": _glorot(256, 256),
        "down": _glorot(D_FF, 256),
        "head": _glorot(256, 512),
    },
    ("gpt2", False): dict.fromkeys(["token", "position", "query", "key", "value", "gate", "up", "head"], 0.02)
    | {"output": 0.01, "down": 0.01},  # 0.02 / sqrt(2 * 2 layers)
    ("zero-output", False): {"token": 1, "position": 0.02, "output": 0, "down": 0, "head": 0}
    | dict.fromkeys(["query", "key", "value", "gate", "up"], 1 / 16),
}
TABLE["course", True] = TABLE["course", False] | {"head": 1}
TABLE["gpt2", True] = TABLE["gpt2", False]
TABLE["zero-output", True] = TABLE["zero-output", False] | {"token": 0.02, "head": 0.02}


@pytest.mark.parametrize(("scheme", "tied"), TABLE)
def test_every_weight_begins_as_the_table_says(scheme, tied):
    assert _deviations(_model(scheme, tied)) == pytest.approx(TABLE[scheme, tied], rel=0.03)


@pytest.mark.parametrize("scheme", ["course", "gpt2", "zero-output"])
def test_norms_begin_at_one_and_biases_at_zero(scheme):
    model = _model(scheme, norm_offset=1.0, qk_norm="head", head_bias=True, norm="rms")
    for name, parameter in model.named_parameters():
        if "norm.weight" in name:
            assert parameter.eq(0).all(), name  # 1 + w multiplies
        if name.endswith("bias"):
            assert parameter.eq(0).all(), name


@pytest.mark.parametrize("preset", [presets.default, presets.gpt2], ids=["default", "gpt2"])
def test_a_fresh_model_begins_as_the_course_says(preset):
    torch.manual_seed(0)
    model = TransformerLM(preset(**SIZES))
    before = {name: parameter.detach().std().item() for name, parameter in model.named_parameters()}
    initialize(model, "course", seed=1)
    after = {name: parameter.detach().std().item() for name, parameter in model.named_parameters()}
    assert after == pytest.approx(before, rel=0.03)


def test_zero_outputs_make_the_logits_and_every_block_nothing():
    model = _model("zero-output")
    x = torch.randn(1, 5, 256)
    assert torch.equal(model.blocks[0](x), x)
    assert model(torch.tensor([[1, 2, 3]])).eq(0).all()


@pytest.mark.parametrize("scheme", ["course", "gpt2", "zero-output"])
def test_one_seed_is_one_model_and_leaves_the_global_stream_alone(scheme):
    state = torch.random.get_rng_state()
    first, second = _model(scheme), _model(scheme)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    torch.random.set_rng_state(state)
    initialize(first, scheme, seed=5)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not torch.equal(first.token_embedding.weight, second.token_embedding.weight)


def test_without_a_seed_the_global_stream_is_drawn_from():
    model = _model("course")
    torch.manual_seed(3)
    first = initialize(model).lm_head.weight.clone()
    second = initialize(model).lm_head.weight.clone()
    torch.manual_seed(3)
    assert torch.equal(initialize(model).lm_head.weight, first)
    assert not torch.equal(first, second)


def test_weights_stay_leaves_that_training_may_change():
    assert all(parameter.is_leaf and parameter.requires_grad for parameter in _model("gpt2").parameters())


def test_an_unknown_scheme_is_refused_by_name(no_shape_checks):
    with pytest.raises(ConfigError, match=r"a scheme among .*'zero-output'.* but got 'xavier'"):
        initialize(TransformerLM(ModelConfig()), "xavier")
