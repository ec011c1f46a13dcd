"""Fine-tuning goes on bit for bit, on text and on chats, with factors and without; and a model learns when to stop."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import pellucid
from pellucid.checkpoint import RunFolder
from pellucid.data import ConversationRows, TokenFile
from pellucid.errors import ModelFileError
from pellucid.generate import decode
from pellucid.text import CHATML, ChatTemplate, Message
from pellucid.train import Evaluated, Resumed, StartScored, evaluate, resume, train
from pellucid.train.material import reopen_material
from tests.train.small_run import Heard, stop_after
from tests.whole.fine_tuning_runs import CHATS, make_source, request
from tests.whole.test_stop_and_resume import assert_equal

WAYS = {
    "text": {"micro_batch_size": 3},
    "text with factors": {"lora": 4, "ema": 0.5},
    "text with dropout": {"model": {"dropout": 0.3}},
    "chats": CHATS,
    "chats with factors": CHATS | {"lora": 4, "lora_targets": "query,value,down"},
    "chats with factors, compiled": CHATS | {"lora": 4, "compile": "on"},
}


pytestmark = pytest.mark.usefixtures("nothing_takes_long")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return make_source(tmp_path_factory.mktemp("source"))


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.slow if "compiled" in way else ()) for way in WAYS]
)
def test_stopped_and_resumed_it_ends_the_same(tmp_path, source, way, no_shape_checks):
    train(request(tmp_path / "alone", source, **WAYS[way]), Heard())
    train(request(tmp_path / "run", source, **WAYS[way]), Heard(), watch=stop_after(2))
    assert not resume(tmp_path / "run", Heard(), watch=stop_after(3)).completed
    heard = Heard()
    assert resume(tmp_path / "run", heard).completed
    assert heard.of(Resumed)[0].step == 5
    one, other = RunFolder.open(tmp_path / "run"), RunFolder.open(tmp_path / "alone")
    assert_equal(one, other)
    if "lora" in WAYS[way]:
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            assert (one.adapter_path / name).read_bytes() == (other.adapter_path / name).read_bytes()


def test_a_checkpoint_of_factors_holds_nothing_else(tmp_path, source):
    train(request(tmp_path / "run", source, lora=2), Heard())
    folder = RunFolder.open(tmp_path / "run")
    checkpoint = folder.load_checkpoint(folder.latest_checkpoint())
    names = {*checkpoint.model, *(name.rpartition("/")[0] for name in checkpoint.optimizer)}
    assert all(".factors." in name for name in names)
    assert set(folder.load_model().state_dict()) == set(pellucid.load(source).model.state_dict())


def test_a_run_with_factors_needs_the_model_it_stands_on(tmp_path, source):
    moved = shutil.copytree(source, tmp_path / "moved")
    train(request(tmp_path / "run", moved, lora=2), Heard(), watch=stop_after(2))
    shutil.rmtree(moved)
    with pytest.raises(ModelFileError, match="the model that the run began with"):
        resume(tmp_path / "run", Heard())


def test_the_figure_is_of_the_weights_that_are_kept(tmp_path, source):
    """Also where these are merged, and a mean: they are scored as they will be used."""
    heard = Heard()
    finished = train(request(tmp_path / "run", source, **CHATS, lora=4, ema=0.5), heard)
    folder = RunFolder.open(tmp_path / "run")
    data = reopen_material(folder.tokens_path, folder.tokenizer_path).data
    score = evaluate(folder.load_model(), data, 0, context_length=64)
    assert score.bits_per_character == pytest.approx(finished.held_out, rel=1e-6)
    assert finished.held_out == min(event.held_out for event in heard.of(Evaluated))
    assert heard.of(StartScored)[0].held_out == finished.before


def test_documents_in_a_row_do_not_see_each_other(tmp_path, source):
    """D22: what stands before in the row changes no logit of what comes after, to the last bit."""
    train(request(tmp_path / "run", source, **CHATS, steps=1, evaluations=1), Heard())
    folder = RunFolder.open(tmp_path / "run")
    rows = ConversationRows(TokenFile.open(folder.tokens_path / "train.tokens"), 64)
    crowded = next(number for number, row in enumerate(rows.packed) if len(row) > 1)
    inputs, _, document_ids, positions = rows.rows([crowded])
    model, first = folder.load_model(), document_ids == 0
    with torch.no_grad():
        before = model(inputs, document_ids=document_ids, positions=positions)
        other = torch.where(first, (inputs + 1) % 60, inputs)
        after = model(other, document_ids=document_ids, positions=positions)
    assert torch.equal(before[~first], after[~first])
    assert not torch.equal(before[first], after[first])


def test_after_a_short_overfit_the_model_stops_by_itself(tmp_path, source):
    """T22."""
    wanted = request(tmp_path / "run", source, **CHATS, steps=150, evaluations=1)
    rates = {f"{name}_learning_rate": 0.01 for name in ("matrix", "embedding", "head", "vector")}
    train(replace(wanted, optimizer=rates), Heard())
    loaded = pellucid.load(tmp_path / "run")
    end = loaded.tokenizer.special_tokens["<|im_end|>"]
    assert loaded.chat_template == CHATML
    assert end in loaded.end_ids
    assert json.loads((tmp_path / "run" / "run.json").read_bytes())["end_ids"] == sorted(loaded.end_ids)
    prompt = ChatTemplate(CHATML, loaded.tokenizer).encode([Message("user", "the dog?")], begin_answer=True).ids
    likeliest = lambda _, logits: int(logits.argmax())  # noqa: E731 - it says what it does
    decoded = decode(loaded.model, [prompt], likeliest, max_tokens=30, stop_ids=loaded.end_ids)
    written = [token_id for _, token_id in decoded]
    assert (loaded.tokenizer.decode(written), written[-1]) == ("woof", end)
