"""Folders that transformers wrote give its logits here (M7, M9, M16, C5, C6, C10, C12)."""

import json
import pickle
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Model, Qwen3ForCausalLM

from pellucid.convert.huggingface import open_hugging_face, read_hugging_face, read_hugging_face_config
from pellucid.errors import ModelFileError
from pellucid.text import character_tokenizer
from tests.convert.random_models import FAMILIES, LENGTH, make_gemma3_with_images, make_gpt2, make_model, saved

GEOMETRIES = [(8, 2), (6, 3), (4, 1), (8, 8)]
NEAR = 1e-4  # weights of deviation 0.1, float32; theirs takes angles in float32, ours come from float64


@torch.no_grad()
def difference(ours, theirs):
    torch.manual_seed(1)
    ids = torch.randint(97, (1, LENGTH))
    expected = theirs(ids).logits
    assert expected.std() > 0.3  # else the tolerance would hide errors
    return (ours(ids) - expected).abs().max()


def edit(folder, **fields):
    described = json.loads((folder / "config.json").read_text())
    for name, value in fields.items():
        described.pop(name, None)
        if value is not ...:
            described[name] = value
    (folder / "config.json").write_text(json.dumps(described))


def edit_weights(folder, change):
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors), folder / "model.safetensors", {"format": "pt"})


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return saved(make_model(), tmp_path_factory.mktemp("llama"))


@pytest.fixture
def folder(llama, tmp_path):
    for path in llama.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), GEOMETRIES)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_in_every_geometry(tmp_path, name, num_heads, num_kv_heads):
    tied = num_heads == 6  # either way in every family
    theirs = make_model(name, num_heads, num_kv_heads, tie_word_embeddings=tied)
    ours = read_hugging_face(saved(theirs, tmp_path))
    assert ours.config.tie_embeddings == tied
    assert difference(ours, theirs) < NEAR


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3", "olmo2", "gemma3"])
def test_heads_may_be_wider_than_their_share(tmp_path, name):
    theirs = make_model(name, 4, 2, d_head=32)
    assert difference(read_hugging_face(saved(theirs, tmp_path)), theirs) < NEAR


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("fields", [{}, {"activation_function": "gelu"}, {"scale_attn_weights": False}])
def test_gpt2(tmp_path, tied, fields):
    theirs = make_gpt2(tie_word_embeddings=tied, **fields)
    assert difference(read_hugging_face(saved(theirs, tmp_path)), theirs) < NEAR


def test_a_file_without_a_head_leaves_a_prefix_out(tmp_path):
    theirs = make_gpt2()
    saved(theirs.transformer, tmp_path)
    assert isinstance(theirs.transformer, GPT2Model)
    assert "wte.weight" in load_file(tmp_path / "model.safetensors")
    assert difference(read_hugging_face(tmp_path), theirs) < NEAR


def test_known_buffers_are_no_weights(tmp_path):
    theirs = make_gpt2()
    mask = {f"transformer.h.{i}.attn.bias": torch.ones(1, 1, 640, 640) for i in range(2)}
    edit_weights(saved(theirs, tmp_path), lambda tensors: tensors | mask)
    assert difference(read_hugging_face(tmp_path), theirs) < NEAR


def test_shards_are_one_model(tmp_path):
    theirs = make_model("qwen3")
    theirs.save_pretrained(tmp_path, max_shard_size="100kB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert difference(read_hugging_face(tmp_path), theirs) < NEAR
    sorted(tmp_path.glob("*.safetensors"))[1].unlink()
    with pytest.raises(ModelFileError, match=r"model-00002-of-.*no such file"):
        read_hugging_face(tmp_path)


def test_a_shard_outside_the_folder_is_not_opened(folder):
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    index = {"weight_map": {"model.norm.weight": "../other/model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelFileError, match="outside the folder"):
        read_hugging_face(folder)


@pytest.mark.parametrize(
    ("stored", "used"),
    [("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float32)],
)
def test_number_types(tmp_path, stored, used):
    saved(make_model("qwen3").to(getattr(torch, stored)), tmp_path)
    ours = read_hugging_face(tmp_path)
    assert {parameter.dtype for parameter in ours.parameters()} == {used}
    theirs = Qwen3ForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert difference(ours.float(), theirs) < NEAR


def test_quantised_numbers_are_refused(folder):
    edit_weights(folder, lambda tensors: tensors | {"model.norm.weight": torch.ones(96, dtype=torch.int8)})
    with pytest.raises(ModelFileError, match=r"model\.norm\.weight as int8"):
        read_hugging_face(folder)


def test_padding_rows_of_the_vocabulary_are_never_written(tmp_path):
    theirs = make_model("qwen3")
    ours = read_hugging_face(saved(theirs, tmp_path), num_ids=90)
    ids = torch.randint(90, (1, 20))
    with torch.no_grad():
        found, expected = ours(ids), theirs(ids).logits
    assert (found[..., 90:] == -torch.inf).all()
    assert (found - expected)[..., :90].abs().max() < NEAR


def test_theta_in_every_spelling(folder, tmp_path_factory):
    theirs = make_model(rope_parameters={"rope_type": "default", "rope_theta": 500_000.0})
    saved(theirs, folder)
    edit(folder, rope_parameters=..., rope_theta=500_000.0)
    assert difference(read_hugging_face(folder), theirs) < NEAR
    edit(folder, rope_parameters={"rope_type": "default", "rope_theta": 500_000.0})
    assert difference(read_hugging_face(folder), theirs) < NEAR
    edit(folder, rope_parameters={"rope_type": "default", "rope_theta": 10_000.0})
    with pytest.raises(ModelFileError, match=r"rope_theta and rope_parameters\.rope_theta"):
        read_hugging_face(folder)


def test_missing_and_unknown_tensors_are_named_as_the_file_names_them(folder):
    def change(tensors):
        tensors["model.layers.9.odd.weight"] = tensors.pop("model.layers.1.mlp.up_proj.weight")
        return tensors

    edit_weights(folder, change)
    with pytest.raises(ModelFileError) as told:
        read_hugging_face(folder)
    assert "model.layers.1.mlp.up_proj.weight is missing" in str(told.value)
    assert "model.layers.9.odd.weight is unknown" in str(told.value)


def test_keys_and_values_of_a_wrong_width_are_told_though_the_sum_fits(folder):
    def change(tensors):
        for layer in range(3):
            name = f"model.layers.{layer}.self_attn."
            tensors[name + "k_proj.weight"] = torch.zeros(12, 96)
            tensors[name + "v_proj.weight"] = torch.zeros(36, 96)
        return tensors

    edit_weights(folder, change)
    with pytest.raises(ModelFileError, match=r"k_proj\.weight has shape \(12, 96\), not \(24, 96\)"):
        read_hugging_face(folder)


def test_a_bias_that_the_config_does_not_speak_of_is_refused(tmp_path):
    saved(make_model("llama with biases"), tmp_path)
    edit(tmp_path, mlp_bias=False)
    with pytest.raises(ModelFileError, match=r"mlp\.\w+_proj\.bias is unknown"):
        read_hugging_face(tmp_path)


def test_a_tied_head_may_be_stored_if_it_is_the_embedding(tmp_path):
    theirs = make_model("qwen3", tie_word_embeddings=True)
    saved(theirs, tmp_path)
    edit_weights(tmp_path, lambda tensors: tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()})
    ours = read_hugging_face(tmp_path)
    assert ours.lm_head.weight is ours.token_embedding.weight
    assert difference(ours, theirs) < NEAR


def test_a_tie_flag_and_weights_that_disagree_are_refused(folder):
    edit(folder, tie_word_embeddings=True)
    with pytest.raises(ModelFileError, match=r"lm_head\.weight of its own.*tie_word_embeddings"):
        read_hugging_face(folder)
    edit(folder, tie_word_embeddings=False)
    edit_weights(folder, lambda tensors: {name: t for name, t in tensors.items() if name != "lm_head.weight"})
    with pytest.raises(ModelFileError, match=r"lm_head\.weight is missing"):
        read_hugging_face(folder)


class Marker:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_a_pickle_is_never_opened(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Marker(str(folder / "marker"))))
    with pytest.raises(ModelFileError, match=r"pytorch_model\.bin, a pickle.*safetensors"):
        read_hugging_face(folder)
    assert not (folder / "marker").exists()


@pytest.mark.parametrize(
    ("file", "content"), [("config.json", b"{"), ("config.json", b"[1]"), ("model.safetensors", b"123")]
)
def test_damaged_files_are_named(folder, file, content):
    (folder / file).write_bytes(content)
    with pytest.raises(ModelFileError, match=file):
        read_hugging_face(folder)


def test_the_config_can_be_read_alone(llama):
    config = read_hugging_face_config(llama)
    assert (config.num_heads, config.num_kv_heads, config.d_head) == (8, 2, 12)


@torch.no_grad()
def test_the_language_part_of_a_model_that_reads_images(tmp_path):
    whole = make_gemma3_with_images()
    whole.save_pretrained(tmp_path)
    character_tokenizer(["".join(map(chr, range(33, 120)))]).save(tmp_path)
    opened = open_hugging_face(tmp_path)
    (note,) = opened.notes
    assert re.search(r"\d+ tensors for images \(multi_modal_projector.*left out", note)
    ids = torch.randint(80, (1, 300))
    expected = whole(input_ids=ids).logits
    assert expected.std() > 0.3
    assert (opened.model()(ids) - expected)[..., :80].abs().max() < NEAR
    assert read_hugging_face(tmp_path).config.vocab_size == 97
