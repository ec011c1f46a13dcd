from dataclasses import replace

import numpy as np
import pytest
import torch

from pellucid.convert import gguf_writing
from pellucid.convert.gguf import read_gguf
from pellucid.convert.gguf_file import GgufFile
from pellucid.convert.gguf_writing import KINDS, expected_tensors, write_gguf
from pellucid.errors import ModelFileError, UserError
from tests.convert.outgoing_models import SHAPES, made, outgoing


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_what_was_expected(kind, tmp_path):
    model = outgoing(made(SHAPES["llama 3.1"]))
    write_gguf(tmp_path / "x.gguf", model, kind)
    read = read_gguf(tmp_path / "x.gguf")[0].state_dict()
    expected = expected_tensors(model, kind)
    assert expected.keys() == model.tensors.keys()
    for name, tensor in expected.items():
        assert torch.equal(read[name], tensor)
        assert (tensor - model.tensors[name]).abs().max() <= {"q4_0": 0.08, "q8_0": 4e-3}.get(kind, 4e-3)


def test_queries_and_keys_are_in_the_order_of_neighbours_for_llama_alone(tmp_path):
    for shape in ("llama", "qwen3"):
        model = made(SHAPES[shape])
        write_gguf(tmp_path / f"{shape}.gguf", outgoing(model), "float32")
        query = GgufFile(tmp_path / f"{shape}.gguf").read("blk.0.attn_q.weight")
        ours = model.state_dict()["blocks.0.attention.query_key_value.weight"][: query.shape[0]].numpy()
        assert np.array_equal(query[1], ours[16 if shape == "llama" else 1])


def test_norms_biases_and_positions_stay_whole(tmp_path):
    write_gguf(tmp_path / "x.gguf", outgoing(made(SHAPES["gpt2"])), "q8_0")
    kinds = {name: tensor.kind.name for name, tensor in GgufFile(tmp_path / "x.gguf").tensors.items()}
    assert kinds["position_embd.weight"] == kinds["blk.0.attn_norm.weight"] == kinds["blk.0.attn_qkv.bias"] == "F32"
    assert kinds["blk.0.attn_qkv.weight"] == kinds["token_embd.weight"] == "Q8_0"


def test_gemma_s_norms_are_stored_with_their_one(tmp_path):
    model = made(replace(SHAPES["gemma3"], attention_scale=None))
    write_gguf(tmp_path / "x.gguf", outgoing(model), "bfloat16")
    stored = torch.from_numpy(GgufFile(tmp_path / "x.gguf").read("output_norm.weight"))
    assert torch.equal(stored, model.final_norm.weight + 1)


def test_a_tied_head_is_written_where_llama_cpp_asks_for_one(tmp_path):
    config = replace(SHAPES["olmo2"], d_head=24, tie_embeddings=True)
    write_gguf(tmp_path / "x.gguf", outgoing(made(config)), "float32")
    assert "output.weight" in GgufFile(tmp_path / "x.gguf").tensors
    assert read_gguf(tmp_path / "x.gguf")[0].config.tie_embeddings
    write_gguf(tmp_path / "y.gguf", outgoing(made(SHAPES["qwen3 tied"])), "float32")
    assert "output.weight" not in GgufFile(tmp_path / "y.gguf").tensors


def test_numbers_too_large_for_float16_are_refused(tmp_path):
    model = made(SHAPES["qwen3"])
    with torch.no_grad():
        model.blocks[0].feed_forward.up.weight[0, 0] = 1e5
    with pytest.raises(ModelFileError, match="float16 can hold"):
        write_gguf(tmp_path / "x.gguf", outgoing(model), "float16")


def test_without_the_library_it_says_how_to_get_it(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(gguf_writing.importlib, "import_module", missing)
    with pytest.raises(UserError, match=r'pip install "pellucid\[gguf\]"'):
        write_gguf(tmp_path / "x.gguf", outgoing(made(SHAPES["qwen3"])), "float32")
