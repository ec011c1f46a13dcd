"""A run may begin with a model that has learned already, wherever it lies."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from pellucid.checkpoint import RunFolder, read_model, write_model
from pellucid.errors import ConfigError, ModelFileError, RunFolderError
from pellucid.text import character_tokenizer
from pellucid.train import Start, StartOpened, StartScored, train
from pellucid.train.start import weights_hash
from pellucid.train.verdict import since_before
from tests.train.small_run import Heard, small_model, small_request, small_text, train_small


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder with a model whose vocabulary is padded, and which knows chats and an end of turn."""
    folder = tmp_path_factory.mktemp("source")
    tokenizer = character_tokenizer([small_text()])
    tokenizer.save(folder)
    model = small_model(vocab_size=tokenizer.vocab_size + 3, num_unused_ids=3, context_length=64)
    write_model(folder, model.to(torch.bfloat16).state_dict(), model.config)
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


def go_on(out, source, added=(), **changes):
    changes = {"tokenizer": None, "steps": 4} | changes
    model, heard = changes.pop("model", {}), Heard()
    request = small_request(out, start=Start.open(source, added), **changes)
    return train(replace(request, model=model), heard), heard


def test_it_learns_from_where_the_model_was(tmp_path, source):
    finished, heard = go_on(tmp_path / "run", source, steps=12)
    (opened,), (scored,) = heard.of(StartOpened), heard.of(StartScored)
    assert (opened.vocab_size, opened.context_length) == (Start.open(source).tokenizer.vocab_size, 64)
    assert finished.before == scored.held_out > finished.held_out
    assert finished.gain == pytest.approx(finished.before - finished.held_out)
    assert "the run made it better" in since_before(finished)


def test_the_model_is_what_it_was_but_for_its_number_type(source):
    made, there = Start.open(source).model({}), read_model(source)
    assert {tensor.dtype for tensor in there.state_dict().values()} == {torch.bfloat16}
    assert {tensor.dtype for tensor in made.state_dict().values()} == {torch.float32}
    assert made.config == there.config
    assert all(torch.equal(made.state_dict()[name], tensor.float()) for name, tensor in there.state_dict().items())


def test_what_belongs_to_the_model_goes_over(tmp_path, source):
    go_on(tmp_path / "run", source, added=["<|a|>", "<|b|>"])
    folder = RunFolder.open(tmp_path / "run")
    assert folder.chat_template_path.read_text() == "{{ messages }}"
    assert folder.facts["from"]["sha256"] == weights_hash(source)
    assert folder.facts["from"]["added_tokens"] == ["<|a|>", "<|b|>"]
    config = folder.model_config()
    assert (config.num_unused_ids, config.context_length) == (1, 64)
    assert folder.facts["plan"]["row_length"] is None
    assert json.loads(folder.tokenizer_path.read_bytes())["added_tokens"][-1]["content"] == "<|b|>"


def test_rows_may_be_shorter_than_the_model_can_read(tmp_path, source):
    finished, _ = go_on(tmp_path / "run", source, model={"context_length": 16, "dropout": 0.1})
    folder = RunFolder.open(tmp_path / "run")
    assert (finished.context_length, folder.facts["plan"]["row_length"]) == (16, 16)
    assert (folder.model_config().context_length, folder.model_config().dropout) == (64, 0.1)


@pytest.mark.parametrize(
    ("changes", "came"),
    [
        ({"model": {"d_model": 64}}, "--model.d-model beside --from"),
        ({"model": {"context_length": 65}}, "--model.context-length 65"),
        ({"preset": "gpt2"}, "--preset gpt2 beside --from"),
        ({"tokenizer": "bpe"}, "the tokenizer bpe beside it"),
        ({"vocab_size": 300}, "vocab_size=300 beside it"),
    ],
    ids=str,
)
def test_what_would_make_another_model_is_refused_by_name(tmp_path, source, changes, came):
    with pytest.raises(ConfigError, match=came):
        go_on(tmp_path / "run", source, **changes)
    assert not (tmp_path / "run").exists()


def test_the_same_model_may_lie_elsewhere_and_another_is_refused(tmp_path, source):
    go_on(tmp_path / "run", source)
    moved = shutil.copytree(source, tmp_path / "moved")
    with pytest.raises(RunFolderError, match="has done all"):
        go_on(tmp_path / "run", moved)
    tensors = small_model(vocab_size=Start.open(source).model_config.vocab_size, num_unused_ids=3, context_length=64)
    write_model(moved, tensors.state_dict(), Start.open(source).model_config)
    with pytest.raises(RunFolderError, match=r"from\.sha256"):
        go_on(tmp_path / "run", moved)


def test_a_model_that_changed_or_went_is_not_taken_for_what_it_was(tmp_path, source):
    moved = shutil.copytree(source, tmp_path / "moved")
    kept = Start.open(moved).facts()["from"]
    (moved / "model.safetensors").write_bytes((moved / "model.safetensors").read_bytes()[:-1] + b"x")
    with pytest.raises(ModelFileError, match="other weights"):
        Start.again(kept)
    shutil.rmtree(moved)
    with pytest.raises(ModelFileError, match="nothing there"):
        Start.again(kept)


def test_a_run_from_scratch_says_nothing_of_before(tmp_path):
    finished, heard = train_small(tmp_path / "run")
    assert (finished.before, since_before(finished), heard.of(StartOpened, StartScored)) == (None, "", [])
