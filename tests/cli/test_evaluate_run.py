import json
import shutil

import pytest

from pellucid import presets
from pellucid.checkpoint import RunFolder
from pellucid.cli import evaluate_run
from pellucid.cli.evaluate_flags import EvaluateFlags
from pellucid.cli.evaluate_run import carry_out
from pellucid.data import Document, escape_bits, sources_of_texts
from pellucid.errors import RunFolderError, UserError
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer
from pellucid.train import train
from tests.data.chat_files import animal_chats, chat_file
from tests.train.small_run import Heard, cut_short, small_sources, small_text, train_small
from tests.whole.fine_tuning_runs import CHATS, make_source, request


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        cut_short(patch)
        path = tmp_path_factory.mktemp("runs") / "words"
        train_small(path, sources=small_sources(8000))  # passages of 40 characters, longer than the context
        return path


@pytest.fixture
def told(capsys):
    def call(run, *files, **flags):
        carry_out(EvaluateFlags(run=str(run), files=tuple(map(str, files)), json=True, **flags))
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.txt"
    path.write_text(small_text(3000, seed=5).replace("q", "Ω"), encoding="utf-8")
    return path


@pytest.fixture
def bare(tmp_path):
    """A model without the text it learned from."""
    tokenizer = character_tokenizer([small_text()])
    folder = RunFolder.create(tmp_path / "bare", {})
    sizes = {"d_model": 32, "num_heads": 2, "num_layers": 1, "context_length": 16}
    model = TransformerLM(presets.default(vocab_size=tokenizer.vocab_size, **sizes))
    tokenizer.save(folder.tokenizer_path)
    folder.save_model(model.state_dict(), model.config)
    return folder.path


def test_the_price_of_an_escape_is_the_one_of_training(trained, other, told):
    assert told(trained, other)["escape_bits"] == told(trained)["escape_bits"]


def test_a_model_without_its_text_stands_beside_what_the_text_itself_tells(bare, other, told):
    said = told(bare, other)
    assert [one["name"] for one in said["yardsticks"]] == ["chance", "xz"]
    assert (said["lead"], said["known_share"]) == (None, None)
    assert said["escape_bits"] == escape_bits(3000, character_tokenizer([small_text()]).vocab_size)


def test_a_model_without_its_text_has_nothing_held_out(bare, told):
    with pytest.raises(RunFolderError, match="none: it has no tokens/: name a text"):
        told(bare)


def test_a_run_that_learned_from_everything_says_so(tmp_path, told, monkeypatch):
    cut_short(monkeypatch)
    sources = sources_of_texts([Document("a", small_text())], held_out_percent=0)
    train_small(tmp_path / "all", sources=sources)
    with pytest.raises(RunFolderError, match="everything was for training"):
        told(tmp_path / "all")


def test_a_run_whose_own_text_is_damaged_still_scores_files(trained, other, told, tmp_path):
    copy = tmp_path / "damaged"
    shutil.copytree(trained, copy)
    (copy / "tokens" / "train.tokens").write_bytes(b"no tokens")
    said = told(copy, other)
    assert said["notes"][-1].startswith("The run's own text is left aside. Expected ")
    assert [one["name"] for one in said["yardsticks"]] == ["chance", "xz"]
    with pytest.raises(UserError):
        told(copy)


def test_a_run_on_prepared_folders_that_are_gone_still_scores_files(trained, other, told, tmp_path):
    copy = tmp_path / "prepared"
    shutil.copytree(trained, copy)
    shutil.rmtree(copy / "tokens")
    (copy / "tokens").mkdir()
    gone = {"weights": None, "prepared": [{"path": str(tmp_path / "gone"), "text": "", "files": {}}]}
    (copy / "tokens" / "prepared.json").write_text(json.dumps(gone), encoding="utf-8")
    assert told(copy, other)["notes"][-1].startswith("The run's own text is left aside.")


def test_of_a_long_text_a_part_is_measured_and_that_is_said(trained, other, told, monkeypatch):
    whole = told(trained, other)
    monkeypatch.setattr(evaluate_run, "MOST_MEASURED", 1000)
    part = told(trained, other)
    assert part["together"] == whole["together"]
    assert part["lead"] is None
    assert all("measured on 33% of the text" in one["note"] for one in part["yardsticks"])


def test_of_a_long_training_text_a_part_makes_the_tables_and_that_is_said(trained, other, told, monkeypatch):
    assert "of the text it learned from" in told(trained, other)["yardsticks"][0]["note"]
    whole = evaluate_run._learned
    monkeypatch.setattr(evaluate_run, "_learned", lambda material: (whole(material)[0] * 4, 1.0))
    monkeypatch.setattr(evaluate_run, "MOST_TRAINING", 16_000)
    assert "of 50% of the text it learned from" in told(trained, other)["yardsticks"][0]["note"]


def test_the_held_out_passages_are_read_with_any_stride(trained, told):
    assert told(trained)["together"]["loss"] == told(trained, stride=16)["together"]["loss"]
    assert told(trained, stride=4)["together"]["loss"] != told(trained)["together"]["loss"]


def test_a_page_is_written_and_named(trained, other, tmp_path, capsys):
    page = tmp_path / "page.html"
    carry_out(EvaluateFlags(run=str(trained), files=(str(other),), tokens=str(page)))
    assert "share it with care" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_what_narrower_weights_cost_is_the_difference_of_two_scores(bare, other, told):
    stored, narrow = told(bare, other), told(bare, other, precision="int8")
    difference = narrow["together"]["bits_per_character"] - stored["together"]["bits_per_character"]
    assert narrow["lost"]["bits_per_character"] == pytest.approx(difference, abs=1e-7)
    assert difference != 0
    assert narrow["lost"]["standard_error"] is not None
    assert (stored["precision"], narrow["precision"]) == ("auto", "int8")


def test_weights_named_as_they_are_stored_are_scored_once(bare, other, told):
    assert told(bare, other)["lost"] is None
    assert told(bare, other, precision="float32")["lost"] is None


def test_of_the_held_out_passages_it_is_told_too(trained, told):
    stored, narrow = told(trained), told(trained, precision="bfloat16")
    difference = narrow["together"]["bits_per_character"] - stored["together"]["bits_per_character"]
    assert difference != 0
    assert narrow["lost"]["bits_per_character"] == pytest.approx(difference, abs=1e-7)


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A run that learned from chats, and what it ended with."""
    with pytest.MonkeyPatch.context() as patch:
        cut_short(patch)
        folder = tmp_path_factory.mktemp("taught")
        return folder / "run", train(request(folder / "run", make_source(folder / "source"), **CHATS), Heard())


def test_a_run_that_learned_from_chats_is_scored_on_its_answers_as_in_training(taught, told):
    run, finished = taught
    said = told(run)
    assert said["text"] == "held-out answers"
    assert said["together"]["bits_per_character"] == pytest.approx(finished.held_out, rel=1e-5)
    assert said["together"]["tokens"] == finished.held_out_tokens
    assert said["together"]["characters"] == finished.held_out_characters
    assert told(run, precision="int8")["lost"]["bits_per_character"] != 0


def test_a_screen_says_that_answers_were_scored(taught, capsys):
    carry_out(EvaluateFlags(run=str(taught[0])))
    first, *_, last = capsys.readouterr().out.splitlines()
    assert "of conversations, the answers in them: " in first
    assert last.startswith("[conversations of up to 64 tokens, each read from its beginning · ")
    assert last.endswith(" s]")  # no rate: many more tokens are read than scored


@pytest.mark.parametrize("flags", [{"stride": 8}, {"tokens": "page.html"}])
def test_what_answers_do_not_have_is_refused(taught, flags):
    with pytest.raises(UserError, match="where answers in chats are scored"):
        carry_out(EvaluateFlags(run=str(taught[0]), **flags))


def test_a_file_of_chats_is_no_text_and_the_remedy_is_told(trained, tmp_path):
    path = chat_file(tmp_path / "chats.jsonl", animal_chats())
    with pytest.raises(UserError, match=r"got chats, in .*: a run that learned from chats is scored on the answers"):
        carry_out(EvaluateFlags(run=str(trained), files=(str(path),)))
