import importlib.util
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from pellucid.convert import export, in_transformers
from pellucid.convert.export import UNFINISHED, export_hugging_face
from pellucid.convert.huggingface_writing import write_hugging_face
from pellucid.errors import ExportError, ModelFileError
from tests.convert.outgoing_models import SHAPES, made, outgoing, passage


@pytest.fixture(autouse=True)
def asked_here(monkeypatch):
    """Others are asked within this process, which saves each test their seconds of starting."""

    def ask(program, path, request, folder):
        assert program == "in_transformers.py"
        try:
            return in_transformers.answer(str(path), request)
        except ImportError as error:
            pytest.skip(f"transformers itself lacks something here: {error}")

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


def test_something_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "hf").mkdir()
    with pytest.raises(ModelFileError, match="a folder that is there"):
        exported(tmp_path / "hf")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelFileError, match="a file that is there"):
        exported(tmp_path / "file")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(ModelFileError, match="that is there"):
        exported(tmp_path / "link")
    assert sorted(os.listdir(tmp_path)) == ["file", "hf", "link"]


def test_without_transformers_it_says_that_nobody_else_has_read_it(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = exported(tmp_path / "hf")
    assert len(done.comparisons) == 1
    assert "transformers is not installed here" in done.notes[-1]


def test_a_reader_that_was_killed_is_told_and_refuses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "ask", lambda *_: "it was killed, likely for the memory it needs")
    assert "could not compare it" in exported(tmp_path / "hf").notes[-1]


KILLED = """
import sys
import time
from pathlib import Path
from pellucid.convert.export import unfinished
with unfinished(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_kill_leaves_nothing_under_the_name_and_the_next_export_cleans_up(tmp_path):
    out = tmp_path / "hf"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(out)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(UNFINISHED)
    with export.unfinished(out):  # of one that lives, nothing is taken away
        assert left.exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    with export.unfinished(out):
        assert not left.exists()
