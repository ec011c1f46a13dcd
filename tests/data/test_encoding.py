"""Encoding goes on where it was stopped, whatever stopped it, and ends with the same bytes."""

import random

import pytest

from pellucid.data import encoding, open_sources, passages, pieces, prepare
from pellucid.data.encoding import encode
from pellucid.text import train_byte_pairs

PROSE = "".join(f"{number} bottles of beer on the wall, {number * number} “bottles”\n" for number in range(3000))
TOKENIZER = train_byte_pairs([PROSE], 300)


class Killed(BaseException):
    """As SIGTERM and Ctrl-C are: no Exception."""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_CHARACTERS", 1000)
    monkeypatch.setattr(encoding, "TASK_CHARACTERS", 4000)
    (tmp_path / "texts").mkdir()
    for number in range(6):
        (tmp_path / "texts" / f"{number}.txt").write_text(PROSE[number * 20_000 : (number + 1) * 20_000], "utf-8")
    return open_sources([tmp_path / "texts"])


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".tokens", ".json")}


def encoded(sources, folder, **changed):
    folder.mkdir(exist_ok=True)
    card = encode(sources, folder, TOKENIZER, 1, changed.get("on_progress", lambda progress: None))
    (folder / "progress.json").unlink(missing_ok=True)
    return files(folder), card


def test_it_is_what_train_makes_of_the_text(sources, tmp_path):
    found, card = encoded(sources, tmp_path / "a")
    prepare(sources, TOKENIZER, tmp_path / "b")
    assert found["train.tokens"] == (tmp_path / "b" / "train.tokens").read_bytes()
    assert found["held_out.tokens"] == (tmp_path / "b" / "held_out.tokens").read_bytes()
    assert card.lines == sum(bool(line) for passage in passages(sources) for line in passage.text.split("\n"))


@pytest.mark.parametrize("seconds", [0.0, 1e9], ids=["saved after every task", "saved by the signal alone"])
def test_stopped_many_times_it_ends_with_the_same_bytes(sources, tmp_path, monkeypatch, seconds):
    monkeypatch.setattr(encoding, "SAVED_EVERY_SECONDS", seconds)
    whole, dice, stops, places = encoded(sources, tmp_path / "whole"), random.Random(7), 0, []

    def stop_now_and_then(progress):
        places.append(progress.characters)
        if dice.random() < 0.4:
            raise Killed

    (tmp_path / "stopped").mkdir()
    while True:
        try:
            encode(sources, tmp_path / "stopped", TOKENIZER, 1, stop_now_and_then)
        except Killed:
            stops += 1
        else:
            break
    (tmp_path / "stopped" / "progress.json").unlink()
    assert stops > 3
    assert places == sorted(set(places))  # nothing was done twice
    assert files(tmp_path / "stopped") == whole[0]


@pytest.mark.parametrize("error", [MemoryError, Killed])
def test_stopped_in_the_middle_of_a_task_it_goes_on_from_before_it(sources, tmp_path, monkeypatch, error):
    monkeypatch.setattr(encoding, "SAVED_EVERY_SECONDS", 0.0)
    whole, calls = encoded(sources, tmp_path / "whole"), []
    add = encoding.CardCounts.add

    def fail_once(self, tally, *, training):
        calls.append(1)
        if len(calls) == 14:
            raise error
        add(self, tally, training=training)

    monkeypatch.setattr(encoding.CardCounts, "add", fail_once)
    (tmp_path / "stopped").mkdir()
    with pytest.raises(error):
        encode(sources, tmp_path / "stopped", TOKENIZER, 1, lambda progress: None)
    assert encoded(sources, tmp_path / "stopped") == whole


def test_the_number_of_processes_changes_nothing(sources, tmp_path):
    whole = encoded(sources, tmp_path / "one")
    (tmp_path / "two").mkdir()
    card = encode(sources, tmp_path / "two", TOKENIZER, 2, lambda progress: None)
    assert (files(tmp_path / "two"), card) == whole


def test_progress_goes_from_where_it_began_to_the_end(sources, tmp_path):
    heard = []
    encoded(sources, tmp_path / "a", on_progress=heard.append)
    assert heard[-1].characters == heard[-1].of == sources.characters
    assert heard[0].resumed_at == 0
    assert heard[-1].seconds_left == 0


def test_no_more_text_waits_than_the_processes_need(sources, tmp_path, monkeypatch):
    waiting = []
    tasks = encoding._tasks

    def watched(batches, deque):
        for task in tasks(batches, deque):
            waiting.append(len(deque))
            yield task

    monkeypatch.setattr(encoding, "_tasks", watched)
    (tmp_path / "a").mkdir()
    encode(sources, tmp_path / "a", TOKENIZER, 2, lambda progress: None)
    assert max(waiting) <= 4
