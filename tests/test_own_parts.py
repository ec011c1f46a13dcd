import re
from pathlib import Path

import pytest
import torch

from pellucid import own_parts
from pellucid.errors import ConfigError, ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM, initialize
from pellucid.nn.own_part import CLASSES
from pellucid.optim import build_optimizer
from pellucid.optim.groups import parameter_groups
from pellucid.training_config import OptimizerConfig
from tests.own_code import MINE, MISTAKES, mistaken

SIZES = {"vocab_size": 20, "d_model": 32, "num_heads": 2, "num_layers": 2, "context_length": 16, "dropout": 0.1}


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_parts, "SOURCES", {})
    CLASSES.clear()
    own_parts.check.cache_clear()


def config(source=MINE, file="mine.py", **parts):
    Path(file).write_text(source, encoding="utf-8")
    return ModelConfig(**SIZES, **own_parts.pinned({field: f"{file}:{name}" for field, name in parts.items()}))


# --- naming and running


def test_a_part_is_named_by_its_file_its_class_and_a_hash():
    (name,) = config(feed_forward="ReGLU").own_parts.values()
    assert re.fullmatch(r"mine\.py:ReGLU@[0-9a-f]{64}", name)
    assert config(MINE + "# changed", feed_forward="ReGLU").feed_forward != name


def test_what_is_no_part_of_ones_own_stays():
    assert own_parts.pinned({"norm": "rms", "num_layers": 2, "d_ff": None}) == {
        "norm": "rms",
        "num_layers": 2,
        "d_ff": None,
    }


def test_a_file_is_run_once_however_many_parts_it_has():
    config("from pathlib import Path\nPath('ran').open('a').write('x')\n" + MINE, feed_forward="ReGLU", norm="Scaled")
    assert Path("ran").read_text(encoding="utf-8") == "x"


def test_files_of_one_name_do_not_meet():
    Path("a").mkdir()
    first = config("x = 1" + MINE, "a/mine.py", feed_forward="ReGLU")
    second = config("x = 2" + MINE, feed_forward="ReGLU")
    kinds = [CLASSES[one.feed_forward] for one in (first, second)]
    assert kinds[0] is not kinds[1]


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("class A(:", "A", r"Python that runs in 'mine.py', but got SyntaxError in line 1: "),
        ("\n\n1 / 0", "A", r"but got ZeroDivisionError in line 3: division by zero: mend it"),
        ("import sys; sys.exit(3)", "A", r"but got SystemExit in line 1: 3"),
        ("from neighbour import x", "A", r"ModuleNotFoundError in line 1: No module named 'neighbour'"),
        (MINE, "Reglu", r"a class Reglu in 'mine.py' that is an nn.Module, but got none: it has ReGLU, Scaled, Halved"),
        ("A = 3", "A", r"but got another thing of that name: write class NAME\(torch.nn.Module\)"),
        ("class A: pass", "A", "but got another thing of that name"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_sentence_with_the_line(source, name, said):
    with pytest.raises(ConfigError, match=said):
        config(source, feed_forward=name)


def test_a_file_that_is_not_there_is_said():
    with pytest.raises(ConfigError, match=r"a Python file at 'nowhere.py', but got No such file"):
        own_parts.pinned({"norm": "nowhere.py:A"})


def test_a_hash_that_was_asked_for_must_fit():
    Path("mine.py").write_text(MINE, encoding="utf-8")
    with pytest.raises(ConfigError, match="it has been changed"):
        own_parts.pinned({"norm": f"mine.py:Scaled@{'0' * 64}"})


# --- trying


def test_good_parts_pass():
    own_parts.check(config(feed_forward="ReGLU", norm="Scaled", attention="Halved"))
    own_parts.check(config(feed_forward="Drawn", attention="OneHead"))


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_found_and_said(name):
    with pytest.raises(ConfigError, match=re.escape(MISTAKES[name][2])):
        own_parts.check(config(mistaken(name), feed_forward=name))


def test_attention_that_ignores_the_cache_is_found():
    forgetful = MINE.replace("key, value = cache.write(key, value)", "pass")
    with pytest.raises(ConfigError, match=r"go on from a cache|with a cache, which writing needs"):
        own_parts.check(config(forgetful, attention="OneHead"))


def test_attention_that_sees_the_future_is_found():
    with pytest.raises(ConfigError, match="to look at no later position"):
        own_parts.check(config(MINE.replace(".tril()", ""), attention="OneHead"))


def test_a_part_that_breaks_later_is_blamed_with_its_line():
    part = TransformerLM(config(mistaken("Breaks"), feed_forward="Breaks"))
    with pytest.raises(RuntimeError) as caught:
        part(torch.zeros(1, 2, dtype=torch.long))
    assert re.search(
        r"code that runs in \S+mine.py, but got RuntimeError in line 8", str(own_parts.blamed(caught.value))
    )
    assert own_parts.blamed(ValueError("ours")) is None


# --- in a model


def test_it_begins_anew_from_the_seed_and_weights_with_our_names_as_ours_do():
    made = config(feed_forward="ReGLU")
    torch.manual_seed(1)
    first = initialize(TransformerLM(made), "zero-output", seed=5)
    torch.manual_seed(2)
    second = initialize(TransformerLM(made), "zero-output", seed=5)
    for (name, one), other in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    assert not first.blocks[0].feed_forward.down.weight.any()
    assert first.blocks[0].feed_forward.gate.weight.any()


def test_weights_with_other_names_are_drawn_by_its_constructor_from_the_seed():
    made = config(feed_forward="Drawn")
    models = [initialize(TransformerLM(made), "gpt2", seed=seed) for seed in (5, 5, 6)]
    first, again, other = (model.blocks[1].feed_forward for model in models)
    assert torch.equal(first.mixing, again.mixing)
    assert not torch.equal(first.mixing, other.mixing)
    assert bool((first.bias == 1).all())


def test_its_matrices_are_muons_and_a_fused_one_cut_otherwise_is_one_matrix():
    model = TransformerLM(config(feed_forward="Drawn", attention="OneHead"))
    roles = {name: group.role for group in parameter_groups(model, OptimizerConfig()) for name in group.parameters}
    assert roles["blocks.0.feed_forward.mixing"] == "matrices"
    assert roles["blocks.0.attention.query_key_value.weight"] == "matrices"
    assert roles["blocks.0.feed_forward.bias"] == "vectors"
    optimizer = build_optimizer(model, OptimizerConfig())
    model(torch.zeros(1, 4, dtype=torch.long)).sum().backward()
    optimizer.step()


# --- keeping and consent


def kept(made, folder):
    folder.mkdir()
    own_parts.keep(made, folder, lambda path, content: path.write_bytes(content))
    CLASSES.clear()
    return folder


def test_a_copy_lies_beside_the_model_and_is_run_only_when_that_is_said(tmp_path):
    made = config(feed_forward="ReGLU")
    folder = kept(made, tmp_path / "run")
    assert [path.read_text(encoding="utf-8") for path in (folder / "own_parts").iterdir()] == [MINE]
    Path("mine.py").unlink()
    with pytest.raises(ModelFileError, match=r"your consent to run the code .* none for mine.py:ReGLU: read the copy"):
        TransformerLM(made)
    own_parts.allow_kept(made, folder)
    assert TransformerLM(made)(torch.zeros(1, 2, dtype=torch.long)).shape == (1, 2, 20)


def test_a_changed_copy_is_refused(tmp_path):
    made = config(feed_forward="ReGLU")
    folder = kept(made, tmp_path / "run")
    (copy,) = (folder / "own_parts").iterdir()
    copy.write_text("import os  # evil\n" + MINE, encoding="utf-8")
    with pytest.raises(ModelFileError, match="a changed file at"):
        own_parts.allow_kept(made, folder)
    copy.unlink()
    with pytest.raises(ModelFileError, match="copy the folder whole"):
        own_parts.allow_kept(made, folder)


def test_a_foreign_name_leads_nowhere_but_into_the_folder(tmp_path):
    part = f"../../evil.py:A@{'0' * 64}"
    with pytest.raises(ModelFileError, match=r"none at '\S*/run/own_parts/evil-00000000.py'"):
        own_parts.allow_kept(ModelConfig(**SIZES, norm=part), tmp_path / "run")
