"""A run of a prepared folder is the run of its text; it finds its folder again, or says so."""

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.data import Sources, open_prepared_text, open_sources, prepare_folder, training_texts
from pellucid.errors import ConfigError, DataError
from pellucid.text import character_tokenizer
from pellucid.train import Evaluated, Planned, StepDone, TextRead, YardsticksMeasured, resume
from tests.train.small_run import Heard, cut_short, small_text, stop_after, timeless, train_small


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    cut_short(monkeypatch)


@pytest.fixture
def prepared(tmp_path):
    def make(name: str, text: str, tokenizer=None) -> Sources:
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        sources = open_sources([tmp_path / f"{name}.txt"])
        tokenizer = tokenizer or character_tokenizer(training_texts(sources))
        prepare_folder(sources, tmp_path / name, lambda _: (tokenizer, ""), names=[name], asked={}, processes=1)
        return sources

    return make


@pytest.fixture
def words(prepared, tmp_path):
    return prepared("words", small_text()), tmp_path / "words"


def numbers(heard: Heard):
    return [timeless(event.as_json()) for event in heard.of(StepDone, Evaluated, YardsticksMeasured)]


def train_prepared(out, *paths, weights=None, **changes):
    return train_small(out, sources=open_prepared_text(paths, weights), tokenizer=None, **changes)


def test_every_number_is_that_of_the_text(words, tmp_path):
    sources, path = words
    _, of_text = train_small(tmp_path / "a", sources=sources)
    _, of_folder = train_prepared(tmp_path / "b", path)
    assert numbers(of_text) == numbers(of_folder)
    one, other = (RunFolder.open(tmp_path / name).facts for name in ("a", "b"))
    assert one["data"] == other["data"]
    assert one["tokenizer"] == other["tokenizer"]


def test_the_run_keeps_no_copy_but_knows_what_it_read(words, tmp_path):
    train_prepared(tmp_path / "run", words[1])
    assert [path.name for path in (tmp_path / "run" / "tokens").iterdir()] == ["prepared.json"]
    assert (tmp_path / "run" / "tokenizer.json").exists()
    facts = RunFolder.open(tmp_path / "run").facts["data"]
    assert facts["fingerprint"] == words[0].fingerprint


def test_stopped_it_goes_on_to_the_same_end(words, tmp_path):
    _, through = train_prepared(tmp_path / "a", words[1])
    _, heard = train_prepared(tmp_path / "b", words[1], watch=stop_after(3))
    resume(tmp_path / "b", heard)
    steps = {event.step: timeless(event.as_json()) for event in heard.of(StepDone)}
    assert list(steps.values()) == [timeless(event.as_json()) for event in through.of(StepDone)]


@pytest.mark.parametrize("what", ["changed", "gone", "moved"])
def test_a_folder_that_is_not_what_it_was_is_refused_with_a_sentence(words, tmp_path, what):
    train_prepared(tmp_path / "run", words[1], watch=stop_after(3))
    tokens = words[1] / "train.tokens"
    if what == "changed":
        content = bytearray(tokens.read_bytes())
        content[5000] ^= 1
        tokens.write_bytes(content)
    elif what == "gone":
        tokens.unlink()
    else:
        words[1].rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="train.tokens as it was when the run began" if what != "moved" else "prepared"):
        resume(tmp_path / "run", Heard())


def test_two_are_mixed_and_every_part_is_told(words, prepared, tmp_path):
    tokenizer = open_prepared_text([words[1]]).tokenizer()
    prepared("more", small_text(2000, seed=1), tokenizer)
    _, heard = train_prepared(tmp_path / "run", words[1], tmp_path / "more", weights="1,3")
    assert "words 25.0% (" in heard.of(TextRead)[0].notes[0]
    epochs = heard.of(Planned)[0].epochs_of_parts
    assert epochs[1] / epochs[0] == pytest.approx(3 * (2860 / 16 // 1) / (1905 / 16 // 1), rel=0.02)


def test_stopped_a_mixture_goes_on_to_the_same_end(words, prepared, tmp_path):
    prepared("more", small_text(2000, seed=1), open_prepared_text([words[1]]).tokenizer())
    paths = words[1], tmp_path / "more"
    _, through = train_prepared(tmp_path / "a", *paths, weights="0.7,0.3")
    _, heard = train_prepared(tmp_path / "b", *paths, weights="0.7,0.3", watch=stop_after(3))
    resume(tmp_path / "b", heard)
    steps = {event.step: timeless(event.as_json()) for event in heard.of(StepDone)}
    assert list(steps.values()) == [timeless(event.as_json()) for event in through.of(StepDone)]


def test_a_tokenizer_beside_it_is_refused_before_anything_is_made(words, tmp_path):
    for asked in ({"tokenizer": "bpe"}, {"tokenizer": None, "vocab_size": 300}):
        with pytest.raises(ConfigError, match="a prepared folder's own tokenizer"):
            train_small(tmp_path / "run", sources=open_prepared_text([words[1]]), **asked)
    assert not (tmp_path / "run").exists()


def test_a_folder_shorter_than_the_context_is_told_with_both_numbers(words, tmp_path):
    """Field note D1."""
    with pytest.raises(DataError, match=r"at least [\d,]+ tokens"):
        train_prepared(tmp_path / "run", words[1], model={"context_length": 4096})
    assert not (tmp_path / "run").exists()


def test_packed_documents_are_told_in_the_plan_unless_they_are_kept_apart(words, tmp_path):
    _, packed = train_prepared(tmp_path / "a", words[1])
    _, apart = train_prepared(tmp_path / "b", words[1], mask_documents=True)
    assert packed.of(Planned)[0].packed_documents == 10
    assert apart.of(Planned)[0].packed_documents == 0
    assert packed.of(StepDone)[-1].bits_per_character != apart.of(StepDone)[-1].bits_per_character
