"""What is imported is a run: the same model, to the last bit, and everything that goes with it; or nothing at all."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from pellucid.checkpoint import RunFolder
from pellucid.convert.huggingface import open_hugging_face
from pellucid.convert.run_import import import_model
from pellucid.errors import ModelFileError, RunFolderError
from pellucid.loading import load
from pellucid.text import character_tokenizer
from tests.convert.random_models import make_model, saved

TEMPLATE = "{% for m in messages %}{{ m.content }}é\r\n{% endfor %}"


def folder_of(path, name="qwen3", dtype=torch.float32, **fields):
    saved(make_model(name, **fields).to(dtype), path)
    character_tokenizer(["".join(map(chr, range(33, 120)))]).save(path)
    (path / "chat_template.jinja").write_bytes(TEMPLATE.encode())
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 5]}))
    return path


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_an_imported_model_is_the_same(tmp_path, name, dtype):
    source = folder_of(tmp_path / "süße model", name, dtype)
    run = import_model(open_hugging_face(source), source, tmp_path / "the run", {"command": ["import"]})
    first, second = load(source), load(run.path)
    ids = torch.randint(80, (1, 20))
    with torch.no_grad():
        assert torch.equal(first.model(ids), second.model(ids))
    assert (second.chat_template, second.end_ids) == (TEMPLATE, {3, 5}) == (first.chat_template, first.end_ids)
    assert second.tokenizer.fingerprint == first.tokenizer.fingerprint
    assert first.generate("ab", max_tokens=5, seed=1) == second.generate("ab", max_tokens=5, seed=1)
    stored = load_file(run.path / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {dtype}
    theirs = load_file(source / "model.safetensors")
    assert torch.equal(stored["final_norm.weight"], theirs["model.norm.weight"])  # Gemma's w, and not 1 + w


def test_run_json_says_where_it_is_from(tmp_path):
    source = folder_of(tmp_path / "model")
    import_model(open_hugging_face(source), source, tmp_path / "run", {"command": ["pellucid", "import"]})
    facts = RunFolder.open(tmp_path / "run").facts
    (weights,) = facts["imported"]["weights"]
    assert weights["sha256"] == hashlib.sha256((source / "model.safetensors").read_bytes()).hexdigest()
    assert (facts["imported"]["path"], facts["imported"]["kind"]) == (str(source), "a Hugging Face folder")
    assert facts["command"] == ["pellucid", "import"]


def test_what_is_there_is_never_written_over(tmp_path):
    source = folder_of(tmp_path / "model")
    (tmp_path / "run").mkdir()
    with pytest.raises(ModelFileError, match=r"nothing yet at.*remove it"):
        import_model(open_hugging_face(source), source, tmp_path / "run", {})
    assert not list((tmp_path / "run").iterdir())


def test_weights_that_are_not_the_models_leave_nothing(tmp_path):
    source = folder_of(tmp_path / "model")
    described = json.loads((source / "config.json").read_text()) | {"num_hidden_layers": 2}
    described.pop("layer_types", None)
    (source / "config.json").write_text(json.dumps(described))
    with pytest.raises(ModelFileError, match="is unknown"):
        import_model(open_hugging_face(source), source, tmp_path / "run", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_told(tmp_path):
    source = folder_of(tmp_path / "model")
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(RunFolderError, match="may write to"):
        import_model(open_hugging_face(source), source, tmp_path / "closed" / "run", {})


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1])
def test_killed_at_any_moment_it_leaves_a_whole_run_or_none(tmp_path, delay):
    source = folder_of(tmp_path / "model", vocab_size=20_000)
    code = "import sys; from pathlib import Path; from pellucid.convert.huggingface import open_hugging_face as o;"
    code += "from pellucid.convert.run_import import import_model as i; s = Path(sys.argv[1]); f = o(s);"
    code += "print('now', flush=True); i(f, s, Path(sys.argv[2]), {})"
    words = [sys.executable, "-c", code, str(source), str(tmp_path / "run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    if (tmp_path / "run").exists():
        load(tmp_path / "run")
    else:
        import_model(open_hugging_face(source), source, tmp_path / "run", {})
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "run"]
