import importlib.util
import json
import os
from dataclasses import replace

import pytest
import torch

from pellucid.convert import export, gguf_writing, in_llama_cpp, in_transformers
from pellucid.convert.export import export_gguf, export_hugging_face
from pellucid.convert.gguf import read_gguf
from pellucid.convert.gguf_description import describe_gguf
from pellucid.convert.gguf_families import GGUF_FAMILIES
from pellucid.convert.gguf_file import GgufFile
from pellucid.convert.gguf_tokens import describe_tokens
from pellucid.convert.huggingface_writing import write_hugging_face
from pellucid.convert.outgoing import Outgoing
from pellucid.errors import ExportError, ModelFileError
from tests.convert.outgoing_models import SHAPES, made, outgoing, passage


@pytest.fixture(autouse=True)
def asked_here(monkeypatch):
    """Others are asked within this process, which saves each test their seconds of starting."""

    def ask(program, path, request, folder):
        asked = {"in_transformers.py": in_transformers, "in_llama_cpp.py": in_llama_cpp}[program]
        try:
            return asked.answer(str(path), request)
        except ImportError as error:
            pytest.skip(f"{program} lacks something here: {error}")

    monkeypatch.setattr(export, "ask", ask)


def exported(out, shape="qwen3", *, model=None, **more):
    model = model or made(SHAPES[shape])
    return export_hugging_face(model, outgoing(model), out, passage(), **more)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "qwen2 with windows"])
def test_every_shape_is_proved(shape, tmp_path):
    done = exported(tmp_path / "hf", shape)
    ours, theirs = done.comparisons
    assert (ours.difference, ours.tokens, theirs.tokens, theirs.texts) == (0.0, 300, 300, 26)
    assert theirs.reader.startswith("transformers 5.")
    assert theirs.difference < 1e-4 * theirs.spread
    assert sorted(done.files) == sorted(path.name for path in (tmp_path / "hf").iterdir())
    assert os.listdir(tmp_path) == ["hf"]


def test_a_qwen2_with_a_tokenizer_that_is_not_qwen2s_goes_by_another_name(tmp_path):
    assert exported(tmp_path / "hf", "qwen2").family == "Llama"
    with pytest.raises(ModelFileError, match="the tokenizer of Qwen2"):
        exported(tmp_path / "with windows", "qwen2 with windows")


def test_rounding_is_measured(tmp_path):
    ours, theirs = exported(tmp_path / "hf", number_type="bfloat16").comparisons
    assert ours.difference > 1e-3
    assert theirs.difference < 1e-4 * theirs.spread


def spoiled(monkeypatch, spoil):
    def write(folder, model, number_type):
        write_hugging_face(folder, model, number_type)
        spoil(folder)

    monkeypatch.setattr(export, "write_hugging_face", write)


def changed(name, **fields):
    def spoil(folder):
        told = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**told, **fields}))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (changed("config.json", rope_theta=2e4, rope_parameters={"rope_theta": 2e4}), "rope_theta=10000.0"),
        (changed("config.json", rms_norm_eps=1e-3), "norm_epsilon"),
        (changed("generation_config.json", eos_token_id=5), "every id that ends a text .* transformers"),
        (changed("tokenizer_config.json", tokenizer_class="Qwen2Tokenizer"), "the ids of .* transformers"),
        (lambda folder: (folder / "tokenizer_config.json").unlink(), "the ids of .* transformers"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), "whole"),
    ],
)
def test_what_is_spoiled_on_the_way_is_refused_and_removed(spoil, said, tmp_path, monkeypatch):
    spoiled(monkeypatch, spoil)
    with pytest.raises((ExportError, ModelFileError), match=said):
        exported(tmp_path / "hf")
    assert os.listdir(tmp_path) == []


def test_a_wrong_order_of_pairs_is_seen_by_transformers_where_our_own_reader_shares_the_fault(tmp_path, monkeypatch):
    family, fields = export.describe(SHAPES["qwen3"])
    wrong = replace(family, weights=replace(family.weights, pair_order="neighbours"))
    for module in ("huggingface_writing.describe", "huggingface.family_of"):
        answer = (wrong, fields) if module.endswith("describe") else wrong
        monkeypatch.setattr(f"pellucid.convert.{module}", lambda _, answer=answer: answer)
    with pytest.raises(ExportError, match=r"logits at most .* by transformers"):
        exported(tmp_path / "hf")
    assert os.listdir(tmp_path) == []


def test_rows_that_would_be_written_by_others_are_left_out(tmp_path):
    config = replace(SHAPES["qwen3 tied"], vocab_size=290, num_unused_ids=10)
    done = exported(tmp_path / "hf", model=made(config))
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["vocab_size"] == 280
    assert "left out" in done.notes[0]


def test_rows_that_nobody_would_write_are_kept_to_the_byte(tmp_path):
    config = replace(SHAPES["qwen3"], vocab_size=290, num_unused_ids=10)
    model = made(config)
    with torch.no_grad():
        model.lm_head.weight[:280] += 40 * torch.eye(280, 96)
        model.lm_head.weight[280:] = 0.0
        model.final_norm.weight.fill_(20.0)
    done = exported(tmp_path / "hf", model=model)
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["vocab_size"] == 290
    assert "kept" in done.notes[0]


def test_without_transformers_it_says_that_nobody_else_has_read_it(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = exported(tmp_path / "hf")
    assert len(done.comparisons) == 1
    assert "transformers is not installed here" in done.notes[-1]


def test_a_reader_that_was_killed_is_told_and_refuses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "ask", lambda *_: "it was killed, likely for the memory it needs")
    assert "could not compare it" in exported(tmp_path / "hf").notes[-1]


GGUF_SHAPES = {
    "llama": SHAPES["llama"],
    "llama with biases": SHAPES["llama with biases"],
    "llama 3.1": SHAPES["llama 3.1"],
    "qwen2": replace(SHAPES["qwen2"], d_head=24),
    "qwen3": SHAPES["qwen3"],
    "olmo2 tied": replace(SHAPES["olmo2"], d_head=24, tie_embeddings=True),
    "gemma3": replace(SHAPES["gemma3"], attention_scale=None),
    "gpt2": SHAPES["gpt2"],
}


def as_gguf(out, config, **more):
    model = made(config)
    return export_gguf(model, outgoing(model), out, passage(), **more)


@pytest.mark.real
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "q8_0", "q4_0"])
@pytest.mark.parametrize("shape", GGUF_SHAPES)
def test_llama_cpp_has_our_ids_and_our_logits(shape, kind, tmp_path):
    pytest.importorskip("llama_cpp")
    ours, theirs = as_gguf(tmp_path / "x.gguf", GGUF_SHAPES[shape], kind=kind).comparisons
    assert theirs.reader.startswith("llama-cpp-python ")
    assert (theirs.tokens, theirs.texts) == (300, 26)
    assert sorted(os.listdir(tmp_path)) == ["Modelfile", "x.gguf"]
    assert (ours.difference > 0) == (kind != "float32")


@pytest.mark.real
@pytest.mark.parametrize("fault", ["pairs", "theta", "begin"])
def test_a_fault_of_the_writer_and_the_reader_alike_is_seen_by_llama_cpp(fault, tmp_path, monkeypatch):
    pytest.importorskip("llama_cpp")
    family, config = GGUF_FAMILIES["llama"], replace(SHAPES["llama"], rope_theta=500.0)
    if fault == "pairs":
        wrong = replace(family, weights=replace(family.weights, pair_order="halves"))
        monkeypatch.setitem(GGUF_FAMILIES, "llama", wrong)
    elif fault == "theta":
        described = describe_gguf(config)
        wrong = replace(described, entries={**described.entries, "llama.rope.freq_base": 10_000.0})
        monkeypatch.setattr(gguf_writing, "describe_gguf", lambda _: wrong)
        monkeypatch.setattr(export, "prove_here", lambda *_: None)
    else:
        described = describe_tokens(outgoing(made(config)))
        wrong = {**described, "tokenizer.ggml.add_bos_token": True}
        monkeypatch.setattr(gguf_writing, "describe_tokens", lambda _: wrong)
        monkeypatch.setattr(export, "prove_here", lambda *_: None)
    with pytest.raises(ExportError, match=r"(logits at most|the ids) .* by (llama-cpp-python|pellucid)"):
        as_gguf(tmp_path / "x.gguf", config, kind="float32")
    assert os.listdir(tmp_path) == []


def without_llama_cpp(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_a_second_modelfile_takes_the_name_of_its_file(tmp_path, monkeypatch):
    without_llama_cpp(monkeypatch)
    as_gguf(tmp_path / "one.gguf", SHAPES["qwen3"])
    done = as_gguf(tmp_path / "two.gguf", SHAPES["qwen3"], kind="q8_0")
    assert done.files == ("two.gguf", "two.Modelfile")
    assert sorted(os.listdir(tmp_path)) == ["Modelfile", "one.gguf", "two.Modelfile", "two.gguf"]
    assert "llama-cpp-python is not installed here" in done.notes[-1]


def test_rows_that_no_block_fits_are_told(tmp_path, monkeypatch):
    without_llama_cpp(monkeypatch)
    done = as_gguf(tmp_path / "x.gguf", replace(SHAPES["qwen3"], d_ff=80), kind="q8_0")
    assert "3 of 23 matrices are in float16" in done.notes[0]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("number_type", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", GGUF_SHAPES)
def test_out_and_in_and_out_again_is_the_same_file(shape, number_type, tied, tmp_path, monkeypatch):
    without_llama_cpp(monkeypatch)
    config = replace(GGUF_SHAPES[shape], tie_embeddings=tied)
    model, kind = made(config).to(number_type), str(number_type).removeprefix("torch.")
    one, two = tmp_path / "one" / "x.gguf", tmp_path / "two" / "x.gguf"
    export_gguf(model, outgoing(model), one, passage())
    read, tokenizer, end_ids, template = read_gguf(one)
    again = Outgoing.of(read, tokenizer, name="small", end_ids=end_ids, chat_template=template)
    export_gguf(read, again, two, passage(), kind=kind)
    files = GgufFile(one), GgufFile(two)
    for name in files[0].tensors | files[1].tensors:
        # Gemma's 1 + w loses a bit of w, once
        assert all(one == two for one, two in zip(*(file.stored(name).tolist() for file in files), strict=True)) or (
            shape == "gemma3" and "norm" in name
        )
