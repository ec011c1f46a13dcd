import json

import pytest
import torch

from pellucid import presets
from pellucid.checkpoint import empty_model, read_config, read_model, read_tensors, write_model
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig, RopeScaling
from pellucid.nn import TransformerLM

SIZES = {"vocab_size": 23, "d_model": 16, "num_heads": 4, "num_layers": 2, "context_length": 12}
CONFIGS = {
    "default": presets.default(**SIZES, num_kv_heads=2),
    "tied": presets.default(**SIZES, tie_embeddings=True, num_unused_ids=3),
    "gpt2": presets.gpt2(**SIZES),
    "stretched": ModelConfig(
        **SIZES, rope_scaling=RopeScaling(kind="linear", factor=2.5), window=4, layer_pattern=("local", "global")
    ),
}


@pytest.fixture
def written(tmp_path):
    model = TransformerLM(CONFIGS["tied"])
    write_model(tmp_path, model.state_dict(), model.config)
    return tmp_path


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_comes_back_bit_for_bit(tmp_path, config, dtype):
    model = TransformerLM(config).to(dtype).eval()
    write_model(tmp_path, model.state_dict(), config)
    back = read_model(tmp_path)
    assert back.config == config
    assert not back.training
    token_ids = torch.randint(23, (2, 9))
    assert torch.equal(back(token_ids), model(token_ids))


def test_a_tied_weight_is_stored_once_and_shared_after_loading(written):
    assert "lm_head.weight" not in read_tensors(written / "model.safetensors")
    model = read_model(written)
    assert model.lm_head.weight.data_ptr() == model.token_embedding.weight.data_ptr()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.tensor([[1, 2]]))[..., :20].sum().backward()
    optimizer.step()
    assert model.lm_head.weight.data_ptr() == model.token_embedding.weight.data_ptr()


def test_a_tied_config_with_two_different_tensors_is_never_halved(tmp_path):
    tensors = TransformerLM(CONFIGS["tied"]).state_dict()
    tensors["lm_head.weight"] = torch.randn(23, 16)
    with pytest.raises(ModelFileError, match="two different tensors"):
        write_model(tmp_path, tensors, CONFIGS["tied"])
    assert not list(tmp_path.iterdir())


def test_a_copy_of_the_tied_weight_is_stored_once_too(tmp_path):
    tensors = {name: tensor.clone() for name, tensor in TransformerLM(CONFIGS["tied"]).state_dict().items()}
    write_model(tmp_path, tensors, CONFIGS["tied"])
    assert "lm_head.weight" not in read_tensors(tmp_path / "model.safetensors")


def test_loading_leaves_the_global_random_stream_alone(written):
    before = torch.get_rng_state()
    read_model(written)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_empty_model_has_whole_rope_tables():
    config = CONFIGS["stretched"]
    for ours, theirs in zip(empty_model(config).buffers(), TransformerLM(config).buffers(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="other"), "pellucid's own format"),
        (lambda d: d.update(version=99), "version 99"),
        (lambda d: d["model"].update(num_heads=3), "num_heads=3"),
        (lambda d: d["model"].update(d_model="wide"), "d_model"),
        (lambda d: d["model"].update(colour=1), "colour"),
        (lambda d: d.update(model=None), "fields of a model"),
        (lambda d: d["model"].update(vocab_size=24), "has shape"),
    ],
)
def test_a_config_that_does_not_fit_is_refused_in_a_sentence(written, change, words):
    described = json.loads((written / "config.json").read_text())
    change(described)
    (written / "config.json").write_text(json.dumps(described))
    with pytest.raises(ModelFileError, match=words):
        read_model(written)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null"])
def test_a_config_that_is_no_description_is_refused(written, content):
    (written / "config.json").write_bytes(content)
    with pytest.raises(ModelFileError):
        read_config(written)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(written, name):
    (written / name).unlink()
    with pytest.raises(ModelFileError, match=name.replace(".", r"\.")):
        read_model(written)
